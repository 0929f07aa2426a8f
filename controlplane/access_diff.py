"""Who gains or loses what between two `rbac` sections: exact, and pure.

What a principal may do in a namespace depends on the grants named on the way down to it. So it is the same for a
namespace that a grant names and for everything below that no grant names: asking at the named ones asks everywhere.

Rules:
1. Only namespaces at or below a grant that differs, of a principal that holds it, are asked; others cannot differ.
2. A change is told of the topmost namespaces where it is the same change. Where nothing changes below one that is told,
   that is told, too: as an exception.
3. What roles and groups bring is asked once for all who share it; what a principal holds besides is asked only at and
   below the namespaces of its own grants, where alone it can matter.
4. A claim that brings a group stands for whoever bears a token with that claim alone, as `claim:NAME`.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from memplane.identity import Identity, Method
from memplane.policy.access import EVERY_NAMESPACE, AccessIndex, permissions_of, role_closure
from memplane.policy.effective import lineage
from memplane.policy.rbac import TOKEN_PRINCIPAL, Grant, Principal, Rbac, Role

CLAIM = "claim:"


class AccessDifference(NamedTuple):
    """What a principal may do with a permission in a subtree (`*`: everywhere), as sets of cells.

    It holds for everything below that has no entry of its own. `before` equal to `after`: an exception from an entry
    further up.
    """

    principal: str
    namespace: str
    permission: str
    before: int
    after: int


@dataclass(slots=True)
class AccessDifferences:
    """The first of all differences, by principal, namespace and permission, and how many there are."""

    first: list[AccessDifference] = field(default_factory=list)
    total: int = 0


Source = tuple[str, str]
"""Where grants stand that several hold: `role` or `group`, and its name."""
_Sources = frozenset[Source]
_Change = tuple[str, str, int, int]  # namespace, permission, cells before and after
_Ask = Callable[[str, str | None], tuple[int, int]]  # permission and namespace to cells before and after


class _Holding(NamedTuple):
    """What somebody holds on one side: shared sources, and grants of their own."""

    shared: _Sources = frozenset()
    own: tuple[Grant, ...] = ()


class _Holder(NamedTuple):
    """Somebody whose access is asked."""

    shown: str
    identity: Identity
    before: _Holding
    after: _Holding


def access_differences(before: Rbac | None, after: Rbac | None, most: int) -> AccessDifferences:
    """Every access that differs; the first `most` are listed, all are counted.

    Raises:
        InvalidPolicy: A role is named that does not exist.
    """
    old, new = _Side(before), _Side(after)
    holders = _holders(old, new)
    comparison = _Comparison(old, new, holders)
    found = AccessDifferences()
    for holder in holders:
        changes = comparison.changes(holder)
        found.total += changes.total
        room = most - len(found.first)
        if room > 0 and changes.total:
            found.first += [AccessDifference(holder.shown, *change) for change in changes.listed()[:room]]
    return found


class _Side:
    """One of the two sections: who holds what."""

    def __init__(self, rbac: Rbac | None):
        self._rbac = rbac if rbac is not None else Rbac()
        self.index = AccessIndex(rbac, None)
        self.grants: dict[Source, tuple[Grant, ...]] = {
            **{("role", name): role.grants for name, role in self._rbac.roles.items()},
            **{("group", name): group.grants for name, group in self._rbac.groups.items()},
        }
        self._of_member: dict[str, _Sources] = {}
        self.of_claim: dict[str, _Sources] = {}
        for name, group in self._rbac.groups.items():
            brought = self._roles(group.roles) | {("group", name)}
            for member in group.members:
                self._of_member[member] = self._of_member.get(member, frozenset()) | brought
            for claim in group.claims:
                self.of_claim[claim] = self.of_claim.get(claim, frozenset()) | brought

    @property
    def principals(self) -> Iterable[str]:
        """Their ids."""
        return self._rbac.principals

    def of_principal(self, name: str) -> _Holding:
        """What a principal holds; nothing where it is not known."""
        who = self._rbac.principals.get(name)
        if who is None:
            return _Holding()
        return _Holding(self._roles(who.roles) | self._of_member.get(name, frozenset()), who.grants)

    def bearer(self, claim: str) -> _Holding:
        """What the bearer of a token with this claim holds."""
        return _Holding(self.of_claim.get(claim, frozenset()))

    def _roles(self, roles: Iterable[str]) -> _Sources:
        return frozenset(("role", name) for name in role_closure(self._rbac, roles))


def _holders(old: _Side, new: _Side) -> list[_Holder]:
    """Everybody of either section, by what they are shown as."""
    named = {**dict.fromkeys(old.principals), **dict.fromkeys(new.principals)}
    holders = [_Holder(name, Identity(name), old.of_principal(name), new.of_principal(name)) for name in named]
    for claim in {**old.of_claim, **new.of_claim}:
        bearer = Identity(TOKEN_PRINCIPAL, Method.TOKEN, frozenset((claim,)))
        holders.append(_Holder(CLAIM + claim, bearer, old.bearer(claim), new.bearer(claim)))
    return sorted(holders, key=lambda holder: holder.shown)


@dataclass(frozen=True, slots=True)
class _Differing:
    """Where and in what grants differ; nowhere else can accesses differ."""

    namespaces: frozenset[str] = frozenset()
    permissions: frozenset[str] = frozenset()

    @classmethod
    def of(cls, grants: Collection[Grant]) -> "_Differing":
        permissions = (name for grant in grants for name in permissions_of(grant))
        return cls(frozenset(grant.namespace for grant in grants), frozenset(permissions))


class _Shared:
    """What differs for whoever holds these sources before and those after, and nothing besides."""

    def __init__(self, differing: _Differing, named: Iterable[str], ask: _Ask):
        self.differing = differing
        self.named = sorted(_key(name) for name in named)
        places = _places((name for name in map(_name, self.named)), [differing])
        self.told = {permission: dict[str, tuple[int, int]]() for permission in differing.permissions}
        for permission, told in self.told.items():
            _tell(told, permission, places, ask)
        self._keys = sorted((_key(name), permission) for permission, told in self.told.items() for name in told)

    @property
    def total(self) -> int:
        """How many entries there are."""
        return len(self._keys)

    def count_below(self, roots: Iterable[str]) -> int:
        """How many of them are at or below any of these, none of which is below another."""
        return sum(self._first(_end(root)) - self._first(_key(root)) for root in roots)

    def listed(self) -> list[_Change]:
        """The entries, by namespace and permission."""
        found = ((_name(key), permission) for key, permission in self._keys)
        return sorted((name, permission, *self.told[permission][name]) for name, permission in found)

    def named_below(self, roots: Iterable[str]) -> Iterator[str]:
        """The namespaces that its grants name, at or below any of these."""
        for root in roots:
            span = self.named[bisect_left(self.named, _key(root)) : bisect_left(self.named, _end(root))]
            yield from map(_name, span)

    def _first(self, key: str) -> int:
        return bisect_left(self._keys, (key, ""))


@dataclass(frozen=True, slots=True)
class _Changes:
    """What differs for one holder: what is shared but below `roots`, and what is their own there."""

    shared: _Shared
    roots: Sequence[str] = ()
    own: Sequence[_Change] = ()

    @property
    def total(self) -> int:
        return self.shared.total - self.shared.count_below(self.roots) + len(self.own)

    def listed(self) -> list[_Change]:
        below = set(self.roots)
        kept = (change for change in self.shared.listed() if below.isdisjoint(_covering(change[0])))
        return sorted((*kept, *self.own))


class _Comparison:
    """Asks both sides."""

    def __init__(self, old: _Side, new: _Side, holders: Iterable[_Holder]):
        self._old, self._new = old, new
        pairs = {(holder.before.shared, holder.after.shared) for holder in holders}
        old_index, new_index = _index_of_shared(old, pairs, 0), _index_of_shared(new, pairs, 1)
        self._shared: dict[tuple[_Sources, _Sources], _Shared] = {}
        for place, pair in enumerate(pairs):
            ask = _asking(old_index, new_index, Identity(str(place)))
            self._shared[pair] = _Shared(self._differing(*pair), self._named(*pair), ask)

    def changes(self, holder: _Holder) -> _Changes:
        """What differs for somebody."""
        shared = self._shared[holder.before.shared, holder.after.shared]
        grants = {*holder.before.own, *holder.after.own} if holder.before.own or holder.after.own else set[Grant]()
        if not grants:
            return _Changes(shared)
        changed = grants if holder.before.own != holder.after.own else ()
        differing = [shared.differing, _Differing.of(changed)]
        if not any(each.namespaces for each in differing):
            return _Changes(shared)
        roots = _topmost({grant.namespace for grant in grants})
        named = {*shared.named_below(roots), *(grant.namespace for grant in grants)}
        places = _places(named, differing)
        return _Changes(shared, roots, self._own_changes(holder, shared, places, differing))

    def _own_changes(
        self, holder: _Holder, shared: _Shared, places: Mapping[str, Sequence[str]], differing: Iterable[_Differing]
    ) -> list[_Change]:
        ask = _asking(self._old.index, self._new.index, holder.identity)
        found: list[_Change] = []
        for permission in frozenset[str]().union(*(each.permissions for each in differing)):
            told = dict[str, tuple[int, int]]()
            _tell(told, permission, places, ask, shared.told.get(permission, {}))
            found += [(name, permission, *cells) for name, cells in told.items()]
        return found

    def _differing(self, before: _Sources, after: _Sources) -> _Differing:
        grants = set[Grant]()
        for source in before | after:
            old = self._old.grants[source] if source in before else ()
            new = self._new.grants[source] if source in after else ()
            if old != new:
                grants |= set(old) ^ set(new)
        return _Differing.of(grants)

    def _named(self, before: _Sources, after: _Sources) -> set[str]:
        sides = ((self._old, before), (self._new, after))
        return {grant.namespace for side, sources in sides for source in sources for grant in side.grants[source]}


def _index_of_shared(side: _Side, pairs: Iterable[tuple[_Sources, _Sources]], which: int) -> AccessIndex:
    """Knows a principal for each pair, called by its place, who holds the shared sources of one side alone."""
    roles = {str(source): Role.model_construct(grants=grants, includes=()) for source, grants in side.grants.items()}
    principals = {
        str(place): Principal.model_construct(roles=tuple(str(source) for source in pair[which]))
        for place, pair in enumerate(pairs)
    }
    return AccessIndex(Rbac.model_construct(roles=roles, principals=principals), None)


def _asking(old: AccessIndex, new: AccessIndex, who: Identity) -> _Ask:
    def ask(permission: str, namespace: str | None) -> tuple[int, int]:
        return old.cells(who, permission, namespace), new.cells(who, permission, namespace)

    return ask


def _places(named: Iterable[str], differing: Sequence[_Differing]) -> Mapping[str, Sequence[str]]:
    """The namespaces to ask, topmost first, each with those above it from the nearest up."""
    above = {name: _covering(name) for name in named}
    asked = (name for name in above if not all(each.namespaces.isdisjoint(above[name]) for each in differing))
    return {name: above[name][1:] for name in sorted(asked, key=lambda name: len(above[name]))}


def _tell(
    told: dict[str, tuple[int, int]],
    permission: str,
    places: Mapping[str, Sequence[str]],
    ask: _Ask,
    above_told: Mapping[str, tuple[int, int]] = MappingProxyType({}),
) -> None:
    """Adds to `told` what differs from the nearest entry above, which may stand in `above_told` for places outside."""
    for name, above in places.items():
        here = ask(permission, None if name == EVERY_NAMESPACE else name)
        governing = _governing(above, told, places, above_told)
        if here != governing and (_differ(here) or _differ(governing)):
            told[name] = here


def _governing(
    above: Iterable[str],
    told: Mapping[str, tuple[int, int]],
    places: Collection[str],
    above_told: Mapping[str, tuple[int, int]],
) -> tuple[int, int]:
    for name in above:
        found = told.get(name) or (None if name in places else above_told.get(name))
        if found is not None:
            return found
    return (0, 0)


def _topmost(namespaces: Collection[str]) -> list[str]:
    """Those of them that no other covers."""
    return [name for name in namespaces if not any(other in namespaces for other in _covering(name)[1:])]


def _covering(namespace: str) -> list[str]:
    return [EVERY_NAMESPACE] if namespace == EVERY_NAMESPACE else [*lineage(namespace), EVERY_NAMESPACE]


def _differ(cells: tuple[int, int]) -> bool:
    return cells[0] != cells[1]


def _key(namespace: str) -> str:
    """Sorts a namespace right before all that lies below it; `*` before everything."""
    return "" if namespace == EVERY_NAMESPACE else f"{namespace}."


def _end(namespace: str) -> str:
    """Sorts right after all that lies below a namespace."""
    return "\x7f" if namespace == EVERY_NAMESPACE else f"{namespace}/"


def _name(key: str) -> str:
    return key[:-1] if key else EVERY_NAMESPACE
