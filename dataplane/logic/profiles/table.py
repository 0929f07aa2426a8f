"""Which formula a policy ranks by. A new one is a formula, a row here and a name in `memplane/policy/retrieve.py`."""

from collections.abc import Callable, Mapping

from dataplane.logic.profiles.companion import companion
from dataplane.logic.profiles.formula import Formula
from dataplane.logic.profiles.linear import balanced, orchestrated, weighted
from memplane.policy.retrieve import ProfileName, RetrievePolicy

FORMULAS: Mapping[ProfileName, Callable[[RetrievePolicy], Formula]] = {
    "weighted": weighted,
    "balanced": balanced,
    "orchestrated": orchestrated,
    "companion": companion,
}


def formula_of(policy: RetrievePolicy) -> Formula:
    """The formula of the policy's profile, with its numbers."""
    return FORMULAS[policy.profile](policy)


def least_confidence(policy: RetrievePolicy, asked: float | None = None) -> float:
    """Hits below are left out, 0 to 1: as asked, else the greater of the policy's and its profile's own."""
    return max(policy.min_confidence, formula_of(policy).floor) if asked is None else asked
