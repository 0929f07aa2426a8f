"""`memplane policy test`: tries the golden cases of a policy folder, without a plane."""

from pathlib import Path
from typing import Any

import click

from memplane.cli.child import ChildFailed, answers
from memplane.cli.output import Output
from memplane.cli.session import Session, json_option, pass_session, run

MODULE = "controlplane.check_folder"
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command(
    "test",
    epilog="""\b
Examples:
  memplane policy test                # the folder ./policies
  memplane policy test ./policies --json

\b
Cases stand beside the policies in files named *.test.yaml:
  access:
    - name: agents of sales do not read legal's memories
      given: {principal: sales-assistant, permission: memory.read, namespace: dept.legal}
      expect: deny""",
)
@click.argument("folder", type=FOLDER, default=Path("policies"), metavar="[FOLDER]")
@json_option
@pass_session
def test(session: Session, /, folder: Path) -> None:
    """Checks a policy folder and tries its golden cases, here and without a plane. Exit code 1 when one fails.

    The control plane tries the same cases at every validate and reload.
    """
    try:
        answer = run(_answer(folder))
    except ChildFailed as error:
        raise click.ClickException(str(error)) from None
    if session.as_json:
        session.out.json(answer)
    else:
        _show(session.out, answer)
    if not answer["valid"]:
        raise click.exceptions.Exit(1)


async def _answer(folder: Path) -> Any:
    [answer] = [each async for each in answers(MODULE, [{"folder": str(folder)}], 1)]
    return answer


def _show(out: Output, answer: Any) -> None:
    for each in answer["diagnostics"]:
        place = ":".join(str(part) for part in (each["file"], each["line"], each["column"]) if part)
        style = "yellow" if each["severity"] == "ERROR" else "green"
        out.line(f"{place or 'policy set'}: {each['severity']} {each['code']}: {each['message']}", style)
    results = [case["result"] for case in answer["cases"]]
    told = ", ".join(
        f"{results.count(result)} {result}" for result in ("held", "failed", "untried") if result in results
    )
    out.line(f"{'valid' if answer['valid'] else 'not valid'}: {told or 'no golden cases'}", _style(answer["valid"]))


def _style(good: bool) -> str:
    return "green" if good else "yellow"
