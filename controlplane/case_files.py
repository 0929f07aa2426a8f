"""Reads the golden cases of a policy set: documents named `*.test.yaml`; each case gets the place of its `expect`."""

from collections.abc import Iterator, Mapping, Sequence

from pydantic import ValidationError
from pydantic_core import to_json

from controlplane.compiled import PlacedCase
from controlplane.diagnose import (
    Diagnostic,
    Path,
    Position,
    Severity,
    did_you_mean,
    model_diagnostics,
    shorten,
    warning_at,
)
from controlplane.documents import Document
from controlplane.yaml_tree import Tree, read_tree
from memplane.policy.cases import MAX_CASES, Case, CaseFile
from memplane.policy.rbac import Rbac


def read_cases(documents: Sequence[Document], rbac: Rbac | None) -> tuple[tuple[PlacedCase, ...], list[Diagnostic]]:
    """The cases of these documents in the order of names, and what is to be said about them.

    Principals that the policy does not know may be asked about (they get nothing); that is warned of.
    """
    cases: list[PlacedCase] = []
    diagnostics: list[Diagnostic] = []
    for document in sorted(documents, key=lambda one: one.name):
        tree = read_tree(document)
        diagnostics += tree.diagnostics
        try:
            found = CaseFile.model_validate_json(to_json(tree.values))
        except ValidationError as error:
            diagnostics += model_diagnostics(error, CaseFile, (), tree.positions, tree.unread)
            continue
        cases += _placed(found, tree)
        diagnostics += _unknown_principals(found, tree, rbac)
    if len(cases) > MAX_CASES:
        told = f"{len(cases)} cases; at most {MAX_CASES}, for they are tried at every reload"
        diagnostics.append(Diagnostic(Severity.ERROR, "TOO_MANY_CASES", told, cases[MAX_CASES].place.file))
    return tuple(cases), diagnostics


def _placed(found: CaseFile, tree: Tree) -> Iterator[PlacedCase]:
    places = _places_of_expect(tree)
    sorts: dict[str, Sequence[Case]] = {"access": found.access, "write": found.write, "order": found.order}
    for sort, cases in sorts.items():
        for index, case in enumerate(cases):
            yield PlacedCase(sort, case, (sort, index), places[(sort, index)])


def _places_of_expect(tree: Tree) -> Mapping[Path, Mapping[Path, Position]]:
    """Of each case, by its path: the place of `expect` and of each key in it."""
    places: dict[Path, dict[Path, Position]] = {}
    for path, position in tree.positions.items():
        if len(path) in {3, 4} and path[2] == "expect":
            places.setdefault(path[:2], {})[path] = position
    return places


def _unknown_principals(found: CaseFile, tree: Tree, rbac: Rbac | None) -> Iterator[Diagnostic]:
    known = rbac.principals if rbac is not None else {}
    for index, case in enumerate(found.access):
        name = case.given.principal
        if name is not None and name not in known:
            told = f"no principal {shorten(name)!r} in rbac{did_you_mean(name, known)}; it may do nothing"
            yield warning_at("UNKNOWN_PRINCIPAL", told, ("access", index, "given", "principal"), tree.positions)
