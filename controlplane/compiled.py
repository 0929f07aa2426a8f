"""What compiling documents gives: the policy or none, what is to be said, and where each value stands. Picklable."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from controlplane.diagnose import Diagnostic, Path, Position, Severity, show_path
from memplane.policy.cases import Case
from memplane.policy.effective import SECTIONS, lineage, merge, plain_sections
from memplane.policy.model import PolicySet

OVERRIDES: Path = ("namespace_policy", "overrides")
DEFAULT_LAYER = "default"
BASE_LAYER = "base"


@dataclass(frozen=True, slots=True)
class PlacedCase:
    """A golden case; `path` is its place in its file, `places` those of `expect` and of the keys in it."""

    sort: str
    case: Case
    path: Path
    places: Mapping[Path, Position]

    @property
    def place(self) -> Position:
        """Where what it expects stands."""
        return self.places[(*self.path, "expect")]


@dataclass(frozen=True, slots=True)
class Compiled:
    """Documents compiled. `policy` is None when a diagnostic is an error. `version` is the digest of the documents.

    `cases` are to be tried before the policy is put in force (`controlplane/trial.py`).
    """

    policy: PolicySet | None
    diagnostics: tuple[Diagnostic, ...]
    version: str
    positions: Mapping[Path, Position]
    cases: tuple[PlacedCase, ...] = ()

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that refuse the set."""
        return tuple(diagnostic for diagnostic in self.diagnostics if diagnostic.severity is Severity.ERROR)


class EffectiveValue(NamedTuple):
    """One value that governs a namespace, and whence it comes.

    `layer` is `default` (then file is empty and line 0), `base`, or the namespace of the override. A list is one value.
    """

    path: str
    value: Any
    file: str
    line: int
    layer: str


EVERYWHERE = "degradation_policy"
"""The section that holds for the whole process: shown for every namespace, overridden for none."""


def effective_values(compiled: Compiled, namespace: str) -> list[EffectiveValue]:
    """Every value of the policy that governs `namespace`, in the order of the sections.

    Raises:
        ValueError: The documents did not compile.
    """
    if compiled.policy is None:
        raise ValueError("the documents did not compile; there is no policy to show")
    layers = [name for name in lineage(namespace) if name in compiled.policy.namespace_policy.overrides]
    sections = _merged(compiled.policy, layers)
    return [
        _value(compiled.positions, layers, path, value)
        for name in (*SECTIONS, EVERYWHERE)
        for path, value in _leaves((name,), sections[name])
    ]


def _merged(policy: PolicySet, layers: list[str]) -> Mapping[str, Any]:
    base = policy.model_dump(mode="json", include={EVERYWHERE})
    sections: dict[str, Any] = {**plain_sections(policy), **base}
    for layer in reversed(layers):
        override = policy.namespace_policy.overrides[layer]
        sections = merge(sections, override.model_dump(mode="json", exclude_unset=True))
    return sections


def _leaves(path: Path, value: Any) -> list[tuple[Path, Any]]:
    """The values below a path; an empty mapping is one."""
    if not isinstance(value, dict) or not value:
        return [(path, value)]
    return [leaf for key, below in value.items() for leaf in _leaves((*path, key), below)]


def _value(positions: Mapping[Path, Position], layers: list[str], path: Path, value: Any) -> EffectiveValue:
    shown = show_path(path)
    for layer in layers:
        place = positions.get((*OVERRIDES, layer, *path))
        if place is not None:
            return EffectiveValue(shown, value, place.file, place.line, layer)
    place = positions.get(path)
    if place is not None:
        return EffectiveValue(shown, value, place.file, place.line, BASE_LAYER)
    return EffectiveValue(shown, value, "", 0, DEFAULT_LAYER)
