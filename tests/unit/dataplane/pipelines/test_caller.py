"""Who may read which namespaces."""

import pytest

from dataplane.pipelines.caller import Caller
from memplane.errors import PermissionDenied
from memplane.identity import Identity
from memplane.policy.access import AccessIndex
from memplane.policy.effective import EffectivePolicies
from memplane.policy.model import PolicySet
from memplane.policy.rbac import Grant, Principal, Rbac
from memplane.policy.snapshot import PolicySnapshot

GRANT = Grant(namespace="dept.sales", permissions=("memory.read",))
RBAC = Rbac(principals={"agent": Principal(grants=(GRANT,))})
CALLER = Caller(
    Identity("agent"),
    PolicySnapshot("sha256:1", 1, 0, EffectivePolicies(PolicySet(rbac=RBAC)), AccessIndex(RBAC, None)),
)


def test_the_unreadable_of_several_namespaces_are_told_apart() -> None:
    readable = CALLER.readable(("dept.sales.a", "dept.salesforce", "dept.sales"))
    assert readable == (("dept.sales.a", "dept.sales"), ("dept.salesforce",))


def test_a_single_unreadable_namespace_is_denied() -> None:
    with pytest.raises(PermissionDenied, match=r"dept\.hr"):
        CALLER.readable(("dept.hr",))


def test_a_permission_that_no_grant_allows_is_denied() -> None:
    CALLER.require("memory.read", "dept.sales")
    with pytest.raises(PermissionDenied, match=r"memory\.write"):
        CALLER.require("memory.write", "dept.sales")
