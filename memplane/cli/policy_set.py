"""What the commands about policy share: reading a folder, and telling what is wrong with it."""

from pathlib import Path

import click

from memplane.cli.output import Output, enum_name
from memplane.v1 import policy_pb2

FOLDER = click.argument(
    "folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="[FOLDER]"
)
SUFFIXES = (".yaml", ".yml")


def read_documents(folder: Path) -> list[policy_pb2.PolicyDocument]:
    """The YAML files of a folder as documents, by name.

    Raises:
        click.UsageError: There is none.
    """
    files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and not path.name.startswith("."))
    if not files:
        raise click.UsageError(f"{folder} holds no .yaml file")
    return [policy_pb2.PolicyDocument(name=path.name, content=path.read_bytes()) for path in files]


def show_diagnostics(out: Output, diagnostics: list[policy_pb2.PolicyDiagnostic], total: int) -> None:
    """What is to be said about a set, for people."""
    for each in diagnostics:
        place = ":".join(str(part) for part in (each.file, each.line, each.column) if part)
        severity = enum_name(each, "severity")
        out.line(f"{place or 'policy set'}: {severity} {each.code}: {each.message}", style_of(severity != "ERROR"))
    if total > len(diagnostics):
        out.line(f"and {total - len(diagnostics)} more")


def has_errors(diagnostics: list[policy_pb2.PolicyDiagnostic]) -> bool:
    """Whether the set is refused."""
    return any(each.severity == policy_pb2.DIAGNOSTIC_SEVERITY_ERROR for each in diagnostics)


def style_of(good: bool) -> str:
    """The colour of a line."""
    return "green" if good else "yellow"


def show_progress(out: Output, revision: policy_pb2.PolicyRevision, spread: policy_pb2.PropagationSummary) -> None:
    """Which revision is in force, and how far it has come."""
    out.line(f"in force: generation {revision.generation}, {revision.version_info}", style_of(good=True))
    out.line(
        f"data planes: {spread.connected} connected, {spread.acked} acknowledged, {spread.nacked} refused, "
        f"{spread.pending} pending"
    )
