"""Documents to a policy, or to diagnostics that say where and what: pure, all or nothing, every problem at once.

Steps: names and sizes; each file to a tree; the trees to one; each section against its model; each override merged and
checked as the section that it makes (`controlplane/overrides.py`); then what must hold between values; then the golden
cases are read (`controlplane/case_files.py`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json

from controlplane.case_files import read_cases
from controlplane.compiled import Compiled, EffectiveValue, PlacedCase, effective_values
from controlplane.diagnose import (
    Diagnostic,
    Path,
    Position,
    Severity,
    did_you_mean,
    error_at,
    model_diagnostics,
    shorten,
    show_path,
)
from controlplane.documents import MAX_DOCUMENTS, MAX_SET_BYTES, Document, name_problem, version_of_set
from controlplane.overrides import check_overrides, weight_warnings
from controlplane.rbac_checks import rbac_problems
from controlplane.shrink import shrinks
from controlplane.yaml_tree import Tree, read_tree
from memplane.policy.degradation import DegradationPolicy
from memplane.policy.effective import SECTIONS
from memplane.policy.model import NamespacePolicy, PolicySet
from memplane.policy.rbac import Rbac
from memplane.policy.section import Section

__all__ = ["Compiled", "Document", "EffectiveValue", "compile_documents", "effective_values", "shrinks"]

_OF_ALL_NAMESPACES: Mapping[str, type[Section]] = {
    "rbac": Rbac,
    "namespace_policy": NamespacePolicy,
    "degradation_policy": DegradationPolicy,
}
"""Sections that no override replaces as a whole."""


@dataclass(slots=True)
class _Work:
    """What is known so far."""

    diagnostics: list[Diagnostic]
    merged: Tree = field(default_factory=Tree)
    sections: dict[str, Section] = field(default_factory=dict)
    cases: tuple[PlacedCase, ...] = ()


def compile_documents(documents: Sequence[Document], bootstrap_admin: bool) -> Compiled:
    """The policy of the documents, or None with every error found.

    `bootstrap_admin`: one is configured, so that the `rbac` section need not name an administrator. Takes about a
    second for 300 KB: call it in a worker. Arguments and result can be pickled.
    """
    work = _Work(diagnostics=_set_problems(documents))
    if not work.diagnostics:
        _merge_files(documents, work)
        _check_sections(work)
        _check_between(work, bootstrap_admin)
        _read_cases(documents, work)
    refused = any(diagnostic.severity is Severity.ERROR for diagnostic in work.diagnostics)
    return Compiled(
        policy=None if refused else PolicySet.model_validate(work.sections),
        diagnostics=tuple(sorted(work.diagnostics, key=lambda found: (found.file, found.line, found.column))),
        version=version_of_set(documents),
        positions=work.merged.positions,
        cases=work.cases,
    )


def _set_problems(documents: Sequence[Document]) -> list[Diagnostic]:
    if all(document.holds_cases for document in documents):
        return [_whole("NO_DOCUMENTS", "no .yaml file; a policy set has at least one")]
    if len(documents) > MAX_DOCUMENTS:
        return [_whole("TOO_MANY_DOCUMENTS", f"{len(documents)} documents; at most {MAX_DOCUMENTS}")]
    size = sum(len(document.content) for document in documents)
    if size > MAX_SET_BYTES:
        return [_whole("TOO_LARGE", f"{size} bytes in all; at most {MAX_SET_BYTES}")]
    return _name_problems(documents)


def _name_problems(documents: Sequence[Document]) -> list[Diagnostic]:
    diagnostics: list[Diagnostic] = []
    seen: set[str] = set()
    for document in documents:
        problem = name_problem(document.name)
        if problem is not None:
            diagnostics.append(_whole("BAD_NAME", problem, shorten(document.name)))
        elif document.name in seen:
            diagnostics.append(_whole("DUPLICATE_FILE", "two documents have this name", document.name))
        seen.add(document.name)
    return diagnostics


def _whole(code: str, message: str, file: str = "") -> Diagnostic:
    return Diagnostic(Severity.ERROR, code, message, file)


def _merge_files(documents: Sequence[Document], work: _Work) -> None:
    """Puts all files into one tree; sections may be spread over files, but each value stands in one of them."""
    policy_documents = (document for document in documents if not document.holds_cases)
    for document in sorted(policy_documents, key=lambda one: one.name):
        tree = read_tree(document)
        work.diagnostics += tree.diagnostics
        work.merged.whole &= tree.whole
        work.merged.unread |= tree.unread
        _merge_mapping(work.merged.values, tree, tree.values, (), work)
        for path, position in tree.positions.items():
            work.merged.positions.setdefault(path, position)


def _merge_mapping(target: dict[str, Any], tree: Tree, values: dict[str, Any], path: Path, work: _Work) -> None:
    for key, value in values.items():
        here = (*path, key)
        if key not in target:
            target[key] = value
        elif isinstance(value, dict) and isinstance(target[key], dict):
            _merge_mapping(target[key], tree, value, here, work)
        else:
            work.diagnostics.append(_set_twice(here, work.merged.positions[here], tree.positions))


def _set_twice(path: Path, first: Position, positions: dict[Path, Position]) -> Diagnostic:
    message = f"{show_path(path)} is also set at {first.file}:{first.line}:{first.column}; keep one of the two"
    return error_at("DUPLICATE_KEY", message, path, positions, key=True)


def _check_sections(work: _Work) -> None:
    """Each section alone, so that one that is wrong does not hide what is wrong in the others."""
    for name, plain in work.merged.values.items():
        model = _model_of(name)
        if model is None:
            message = f"unknown section {shorten(name)!r}{did_you_mean(name, PolicySet.model_fields)}"
            work.diagnostics.append(error_at("UNKNOWN_KEY", message, (name,), work.merged.positions, key=True))
            continue
        try:
            work.sections[name] = model.model_validate_json(to_json(plain))
        except ValidationError as error:
            work.diagnostics += model_diagnostics(error, model, (name,), work.merged.positions, work.merged.unread)


def _model_of(name: str) -> type[Section] | None:
    return _OF_ALL_NAMESPACES.get(name) or SECTIONS.get(name)


def _check_between(work: _Work, bootstrap_admin: bool) -> None:
    positions = work.merged.positions
    resolved = check_overrides(work.merged, work.sections, work.diagnostics)
    work.diagnostics += weight_warnings(resolved, positions)
    rbac = work.sections.get("rbac")
    if isinstance(rbac, Rbac) and work.merged.whole:
        problems = rbac_problems(rbac, bootstrap_admin=bootstrap_admin)
        work.diagnostics += [error_at(found.code, found.message, found.path, positions) for found in problems]


def _read_cases(documents: Sequence[Document], work: _Work) -> None:
    rbac = work.sections.get("rbac")
    case_documents = [document for document in documents if document.holds_cases]
    work.cases, diagnostics = read_cases(case_documents, rbac if isinstance(rbac, Rbac) else None)
    work.diagnostics += diagnostics
