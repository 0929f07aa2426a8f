"""`memplane data`: a data plane alone, in the foreground."""

from pathlib import Path

import click

from memplane.cli import config
from memplane.cli.foreground import run_plane
from memplane.cli.session import Session, json_option, pass_session


@click.command(
    epilog="""\b
Examples:
  memplane data --data-dir /var/lib/memplane/data --control control:7700 --trusted-key /etc/memplane/signing_key.pub

The environment gives MEMPLANE_DATA_NODE_KEY, MEMPLANE_DATA_BOOTSTRAP_ADMIN_SHA256 and MEMPLANE_DATA_EMBEDDER."""
)
@click.option(
    "--listen", default="127.0.0.1:7701", show_default=True, metavar="HOST:PORT", help="Port 0: any free one."
)
@click.option("--data-dir", type=click.Path(file_okay=False, path_type=Path), required=True, help="Embedded stores.")
@click.option(
    "--control", default=config.DEFAULT_CONTROL, show_default=True, metavar="HOST:PORT", help="Control plane."
)
@click.option(
    "--trusted-key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="Public key of the control plane: signing_key.pub in its data folder.",
)
@click.option("--node-id", default="data-1", show_default=True, help="Stable name of this data plane.")
@json_option
@pass_session
def data(session: Session, /, **options: object) -> None:
    """Runs a data plane until SIGTERM or Ctrl-C."""
    arguments = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    run_plane(session, "data", arguments)
