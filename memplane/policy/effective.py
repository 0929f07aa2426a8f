"""What the policy says for one namespace: the base, and the overrides on the way down to it, resolved once.

Rules: an override covers its namespace and everything below (`dept.sales` covers `dept.sales.x`, never
`dept.salesforce`). Overrides are merged key by key from the base down; the longest prefix has the last word. Mappings
merge, everything else (numbers, lists) replaces. The merged section must be a valid section.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import to_json

from memplane.policy.codec import InvalidPolicy, first_problem
from memplane.policy.degradation import DegradationPolicy
from memplane.policy.guard import GuardPolicy
from memplane.policy.model import (
    CachePolicy,
    ConflictPolicy,
    ContextPolicy,
    Credibility,
    DecayPolicy,
    NamespaceSettings,
    PolicySet,
    SectionOverrides,
    WritePolicy,
)
from memplane.policy.retrieve import RetrievePolicy
from memplane.policy.section import Section
from memplane.policy.sensitive import SensitivePolicy
from memplane.policy.write_rules import WriteRule

SECTIONS: Mapping[str, type[Section]] = {
    "write_policy": WritePolicy,
    "retrieve_policy": RetrievePolicy,
    "decay_policy": DecayPolicy,
    "namespace_policy": NamespaceSettings,
    "conflict_policy": ConflictPolicy,
    "credibility": Credibility,
    "cache_policy": CachePolicy,
    "context_policy": ContextPolicy,
    "sensitive_policy": SensitivePolicy,
    "guard_policy": GuardPolicy,
}
"""The sections that an override may change, in the order in which they are shown."""

_S = TypeVar("_S", bound=Section)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A write rule ready to match; see `WriteRule`."""

    pattern: re.Pattern[str]
    score: float
    direct: bool


@dataclass(frozen=True, slots=True)
class CompiledGuardRule:
    """A rule of `guard_policy` ready to match; see `GuardRule`."""

    signal: str
    score: float
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class NamespacePolicies:
    """Every section as it holds in one namespace. `rules` are those of `write`, compiled, in their order.

    `partition` is the subtree, named by its topmost namespace, whose memories lie apart: where the nearest override
    that tells `isolation` says `dedicated`. "": they lie with all others.
    """

    write: WritePolicy
    retrieve: RetrievePolicy
    decay: DecayPolicy
    conflict: ConflictPolicy
    credibility: Credibility
    cache: CachePolicy
    context: ContextPolicy
    sensitive: SensitivePolicy
    guard: GuardPolicy
    default_isolation: bool
    shared_pool_approval: bool
    subject_required: bool
    partition: str
    rules: tuple[CompiledRule, ...]
    guard_rules: tuple[CompiledGuardRule, ...]


@dataclass(frozen=True, slots=True)
class _Node:
    """One override resolved: the sections as plain values (to merge further) and as models, and its partition."""

    plain: Mapping[str, Mapping[str, Any]]
    sections: Mapping[str, Section]
    partition: str


class EffectivePolicies:
    """The policies of every namespace, resolved when built; `degradation` is one for all.

    Raises:
        InvalidPolicy: An override, merged, is not a valid section.
    """

    def __init__(self, policy: PolicySet) -> None:
        self.degradation: DegradationPolicy = policy.degradation_policy
        self._compiled: dict[WriteRule, CompiledRule] = {}
        base = _Node(plain=plain_sections(policy), sections=_base_sections(policy), partition="")
        self._base = self._view(base)
        self._by_override: dict[str, NamespacePolicies] = {}
        nodes: dict[str, _Node] = {}
        for namespace, override in in_order(policy.namespace_policy.overrides):
            node = _resolve(_nearest(nodes, namespace, base), namespace, override)
            nodes[namespace] = node
            self._by_override[namespace] = self._view(node)

    def for_namespace(self, namespace: str) -> NamespacePolicies:
        """The policies that govern `namespace`: one dictionary look-up a label."""
        return _nearest(self._by_override, namespace, self._base)

    def _view(self, node: _Node) -> NamespacePolicies:
        write = _section(node, WritePolicy, "write_policy")
        guard = _section(node, GuardPolicy, "guard_policy")
        settings = _section(node, NamespaceSettings, "namespace_policy")
        return NamespacePolicies(
            write=write,
            retrieve=_section(node, RetrievePolicy, "retrieve_policy"),
            decay=_section(node, DecayPolicy, "decay_policy"),
            conflict=_section(node, ConflictPolicy, "conflict_policy"),
            credibility=_section(node, Credibility, "credibility"),
            cache=_section(node, CachePolicy, "cache_policy"),
            context=_section(node, ContextPolicy, "context_policy"),
            sensitive=_section(node, SensitivePolicy, "sensitive_policy"),
            guard=guard,
            default_isolation=settings.default_isolation,
            shared_pool_approval=settings.shared_pool_approval,
            subject_required=settings.subject_required,
            partition=node.partition,
            rules=tuple(self._rule(rule) for rule in write.rules),
            guard_rules=_guard_rules(guard),
        )

    def _rule(self, rule: WriteRule) -> CompiledRule:
        compiled = self._compiled.get(rule)
        if compiled is None:
            compiled = CompiledRule(re.compile(rule.pattern), rule.score, rule.direct)
            self._compiled[rule] = compiled
        return compiled


def _guard_rules(policy: GuardPolicy) -> tuple[CompiledGuardRule, ...]:
    return tuple(CompiledGuardRule(rule.signal, rule.score, re.compile(rule.pattern)) for rule in policy.rules)


def in_order(overrides: Mapping[str, _T]) -> Iterator[tuple[str, _T]]:
    """Overrides, each after those that cover it."""
    return iter(sorted(overrides.items(), key=lambda item: item[0].count(".")))


def lineage(namespace: str) -> Iterator[str]:
    """The namespace itself, then what covers it, longest first: `a.b.c`, `a.b`, `a`."""
    yield namespace
    while "." in namespace:
        namespace = namespace.rpartition(".")[0]
        yield namespace


def plain_sections(policy: PolicySet) -> dict[str, dict[str, Any]]:
    """The base sections as plain JSON values, without the overrides."""
    dump = policy.model_dump(mode="json", include=set(SECTIONS), exclude={"namespace_policy": {"overrides"}})
    return {name: dump[name] for name in SECTIONS}


def merge(base: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the keys of `override` put over it, mapping by mapping; neither is changed."""
    merged = dict(base)
    for key, value in override.items():
        below = merged.get(key)
        merged[key] = merge(below, value) if isinstance(value, Mapping) and isinstance(below, Mapping) else value
    return merged


def build_section(name: str, plain: Mapping[str, Any]) -> Section:
    """The section `name` of plain JSON values.

    Raises:
        ValidationError: It is not valid.
    """
    return SECTIONS[name].model_validate_json(to_json(plain, inf_nan_mode="constants"))


def _nearest(nodes: Mapping[str, _T], namespace: str, base: _T) -> _T:
    for name in lineage(namespace):
        node = nodes.get(name)
        if node is not None:
            return node
    return base


def _resolve(parent: _Node, namespace: str, override: SectionOverrides) -> _Node:
    plain, sections = dict(parent.plain), dict(parent.sections)
    for name in override.model_fields_set:
        plain[name] = merge(parent.plain[name], getattr(override, name))
        try:
            sections[name] = build_section(name, plain[name])
        except ValidationError as error:
            raise InvalidPolicy(f"override {namespace}, {name}: {first_problem(error)}") from error
    return _Node(plain=plain, sections=sections, partition=_partition(parent, namespace, override))


def _partition(parent: _Node, namespace: str, override: SectionOverrides) -> str:
    isolation = override.namespace_policy.get("isolation")
    if isolation is None:
        return parent.partition
    return namespace if isolation == "dedicated" else ""


def _base_sections(policy: PolicySet) -> dict[str, Section]:
    return {name: getattr(policy, name) for name in SECTIONS}


def _section(node: _Node, sort: type[_S], name: str) -> _S:
    section = node.sections[name]
    assert isinstance(section, sort), name
    return section
