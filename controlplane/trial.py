"""Golden cases tried on a compiled policy: what is asked of the data plane's code, what is said of its answer. Pure.

`controlplane/case_child.py` carries the question to `dataplane.policy_cases` and the answer back.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from controlplane.compiled import Compiled, PlacedCase
from controlplane.diagnose import Diagnostic, Severity, shorten, show_path
from memplane.policy.cases import MAX_SECONDS, difference
from memplane.policy.codec import to_json

_WORDS = frozenset({"", "action", "layer"})
"""What is expected there reads well without quotes."""


def question(compiled: Compiled) -> bytes:
    """The line that asks what comes of the cases; empty where there is nothing to ask."""
    if compiled.policy is None or not compiled.cases:
        return b""
    cases = [[each.sort, _plain(each)] for each in compiled.cases]
    return b'{"policy": %b, "cases": %b}\n' % (to_json(compiled.policy), json.dumps(cases).encode())


def tried(compiled: Compiled, came: Sequence[Any]) -> Compiled:
    """The same, refused where a case does not hold or was not tried; `came` is index-aligned with the cases."""
    found = [
        diagnostic
        for case, each in zip(compiled.cases, came, strict=False)
        if (diagnostic := _failure(case, each)) is not None
    ]
    found += _untried(compiled.cases, len(came))
    if not found:
        return compiled
    diagnostics = sorted((*compiled.diagnostics, *found), key=lambda one: (one.file, one.line, one.column))
    return replace(compiled, policy=None, diagnostics=tuple(diagnostics))


def results(compiled: Compiled, came: Sequence[Any]) -> list[str]:
    """Of each case: held, failed or untried."""
    told = [
        "failed" if difference(_plain(case)["expect"], each) else "held"
        for case, each in zip(compiled.cases, came, strict=False)
    ]
    return told + ["untried"] * (len(compiled.cases) - len(told))


def _plain(placed: PlacedCase) -> dict[str, Any]:
    return placed.case.model_dump(mode="json", exclude_unset=True)


def _failure(placed: PlacedCase, came: Any) -> Diagnostic | None:
    found = difference(_plain(placed)["expect"], came)
    if not found:
        return None
    expected = ", ".join(_said(key, pair[0]) for key, pair in found.items())
    instead = ", ".join(_said(key, pair[1]) for key, pair in found.items())
    name = shorten(placed.case.name)
    return _at(placed, "CASE_FAILED", f"{name!r}: expected {expected}; came {instead}", next(iter(found)))


def _untried(cases: Sequence[PlacedCase], count: int) -> Iterator[Diagnostic]:
    if count < len(cases):
        told = f"{MAX_SECONDS:g} s of processor time are over: {len(cases) - count} cases from here on were not tried"
        yield _at(cases[count], "CASES_TOO_SLOW", told)


def _said(key: str, value: Any) -> str:
    """`score 0.72`, or the value alone where it is the whole."""
    shown = value if key in _WORDS and isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        shown = f"{value:.4g}"
    return f"{key} {shorten(str(shown))}".strip()


def _at(placed: PlacedCase, code: str, message: str, key: str = "") -> Diagnostic:
    whole = (*placed.path, "expect")
    path = (*whole, key) if (*whole, key) in placed.places else whole
    place = placed.places[path]
    return Diagnostic(Severity.ERROR, code, message, place.file, place.value_line, place.value_column, show_path(path))
