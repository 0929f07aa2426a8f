"""`memplane control`: the control plane alone, in the foreground."""

from pathlib import Path

import click

from memplane.cli.foreground import run_plane
from memplane.cli.session import Session, json_option, pass_session


@click.command(
    epilog="""\b
Examples:
  memplane control --listen 0.0.0.0:7700 --data-dir /var/lib/memplane/control --policy-folder /etc/memplane/policies

The environment gives MEMPLANE_CONTROL_BOOTSTRAP_ADMIN_SHA256 (hash of the administrator's API key) and
MEMPLANE_CONTROL_NODE_KEY_SHA256 (hash of the key that data planes present)."""
)
@click.option(
    "--listen", default="127.0.0.1:7700", show_default=True, metavar="HOST:PORT", help="Port 0: any free one."
)
@click.option("--data-dir", type=click.Path(file_okay=False, path_type=Path), required=True, help="Revisions and keys.")
@click.option(
    "--policy-folder", type=click.Path(exists=True, file_okay=False, path_type=Path), help="YAML to load and watch."
)
@json_option
@pass_session
def control(session: Session, /, listen: str, data_dir: Path, policy_folder: Path | None) -> None:
    """Runs the control plane until SIGTERM or Ctrl-C."""
    arguments = ["--listen", listen, "--data-dir", str(data_dir)]
    if policy_folder is not None:
        arguments += ["--policy-folder", str(policy_folder)]
    run_plane(session, "control", arguments)
