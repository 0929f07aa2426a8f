"""`memplane data`: a data plane alone, in the foreground."""

from pathlib import Path

import click

from memplane.cli import config
from memplane.cli.foreground import PASSED_ON, plane_flags, run_plane
from memplane.cli.session import Session, config_option, json_option, pass_session


@click.command(
    context_settings=PASSED_ON,
    epilog="""\b
Examples:
  memplane data --config /etc/memplane/memplane.toml --node-id data-2
  memplane data --control control:7700 --control-tls-ca-file ca.crt --trusted-key /etc/memplane/signing_key.pub

The environment gives MEMPLANE_DATA_NODE_KEY, MEMPLANE_DATA_BOOTSTRAP_ADMIN_SHA256 and MEMPLANE_DATA_EMBEDDER.""",
)
@config_option
@click.option("--listen", metavar="HOST:PORT", help="Port 0: any free one.  [default: 127.0.0.1:7701]")
@click.option("--data-dir", type=click.Path(file_okay=False, path_type=Path), help="Embedded stores.")
@click.option("--control", metavar="HOST:PORT", help=f"Control plane.  [default: {config.DEFAULT_CONTROL}]")
@click.option(
    "--trusted-key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Public key of the control plane: signing_key.pub in its data folder.",
)
@click.option("--node-id", help="Stable name of this data plane.  [default: data-1]")
@json_option
@plane_flags
@pass_session
def data(session: Session, /, more: tuple[str, ...], **options: object) -> None:
    """Runs a data plane until SIGTERM or Ctrl-C. What is not given here is read from the configuration file.

    Every setting of [data] in docs/configuration.md is a flag, too, such as --metrics-listen.
    """
    run_plane(session, "data", options, more)
