"""`memplane control`: the control plane alone, in the foreground."""

from pathlib import Path

import click

from memplane.cli.foreground import PASSED_ON, plane_flags, run_plane
from memplane.cli.session import Session, config_option, json_option, pass_session


@click.command(
    context_settings=PASSED_ON,
    epilog="""\b
Examples:
  memplane control --config /etc/memplane/memplane.toml
  memplane control --listen 127.0.0.1:7700 --data-dir /var/lib/memplane/control --policy-folder /etc/memplane/policies

The environment gives MEMPLANE_CONTROL_BOOTSTRAP_ADMIN_SHA256 (hash of the administrator's API key) and
MEMPLANE_CONTROL_NODE_KEY_SHA256 (hash of the key that data planes present).""",
)
@config_option
@click.option("--listen", metavar="HOST:PORT", help="Port 0: any free one.  [default: 127.0.0.1:7700]")
@click.option("--data-dir", type=click.Path(file_okay=False, path_type=Path), help="Revisions and keys.")
@click.option(
    "--policy-folder", type=click.Path(exists=True, file_okay=False, path_type=Path), help="YAML to load and watch."
)
@json_option
@plane_flags
@pass_session
def control(session: Session, /, more: tuple[str, ...], **options: object) -> None:
    """Runs the control plane until SIGTERM or Ctrl-C. What is not given here is read from the configuration file.

    Every setting of [control] in docs/configuration.md is a flag, too, such as --metrics-listen.
    """
    run_plane(session, "control", options, more)
