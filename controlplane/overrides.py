"""Checks the overrides of `namespace_policy`: each, merged over what it covers, must make valid sections."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from controlplane.compiled import OVERRIDES
from controlplane.diagnose import Diagnostic, Path, Position, model_diagnostics, show_path, warning_at
from controlplane.yaml_tree import Tree
from memplane.policy.effective import SECTIONS, build_section, in_order, lineage, merge
from memplane.policy.names import is_namespace
from memplane.policy.retrieve import RetrievePolicy
from memplane.policy.section import Section

_SUM_TOLERANCE = 1e-9

Resolved = dict[Path, Section]
"""Sections as merged, by the path of the section or of the override that made them."""


def check_overrides(tree: Tree, base: Mapping[str, Section], diagnostics: list[Diagnostic]) -> Resolved:
    """The valid base sections and every valid overridden one; adds what is wrong with the others to `diagnostics`.

    An override is merged over the nearest valid section that covers it, so that one mistake is told once.
    """
    plain: dict[Path, Mapping[str, Any]] = {(name,): _plain(name, base) for name in SECTIONS}
    resolved: Resolved = {(name,): base[name] for name in SECTIONS if name in base}
    for namespace, name, override in _overridden(tree.values):
        path = (*OVERRIDES, namespace, name)
        merged = merge(_covering(plain, namespace, name), override)
        try:
            resolved[path] = build_section(name, merged)
            plain[path] = merged
        except ValidationError as error:
            diagnostics += model_diagnostics(error, SECTIONS[name], path, tree.positions, tree.unread)
    return resolved


def weight_warnings(resolved: Resolved, positions: Mapping[Path, Position]) -> Iterator[Diagnostic]:
    """A warning for each place that gives retrieve weights whose sum is not 1."""
    for path, section in resolved.items():
        if not isinstance(section, RetrievePolicy):
            continue
        totals = {
            ("weights",): section.weights.total(),
            ("orchestrated", "weights"): section.orchestrated.weights.total(),
        }
        for keys, total in totals.items():
            here: Path = (*path, *keys)
            if here in positions and abs(total - 1.0) > _SUM_TOLERANCE:
                message = f"{show_path(here)} sum to {total:.6g}, not 1; they are divided by their sum"
                yield warning_at("WEIGHTS_NORMALISED", message, here, positions)


def _overridden(values: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(namespace, section, its values) of each override that has the right shape, covering ones first."""
    found: Any = values
    for key in OVERRIDES:
        found = found.get(key) if isinstance(found, dict) else None
    overrides = found if isinstance(found, dict) else {}
    for namespace, sections in in_order({name: value for name, value in overrides.items() if is_namespace(name)}):
        for name, section in sections.items() if isinstance(sections, dict) else ():
            if name in SECTIONS and isinstance(section, dict):
                yield namespace, name, section


def _plain(name: str, base: Mapping[str, Section]) -> dict[str, Any]:
    """The base section as plain values; the default one where it is missing or wrong."""
    section = base.get(name) or SECTIONS[name]()
    return section.model_dump(mode="json", exclude={"overrides"})


def _covering(plain: Mapping[Path, Mapping[str, Any]], namespace: str, name: str) -> Mapping[str, Any]:
    for above in lineage(namespace):
        found = plain.get((*OVERRIDES, above, name))
        if found is not None:
            return found
    return plain[(name,)]
