import pytest

from memplane.identity import Identity, Method
from memplane.policy.access import AccessIndex, hash_api_key
from memplane.policy.cells import cell
from memplane.policy.rbac import BOOTSTRAP_ADMIN, Grant, Principal, Rbac
from memplane.policy.review import may_review

FACT, DOCUMENT = cell(4, 1, 0), cell(4, 6, 0)
GRANT = Grant(namespace="dept.sales", permissions=("review", "share.approve"), kinds=("FACT",))
INDEX = AccessIndex(
    Rbac(principals={"ann": Principal(grants=(GRANT,)), "bob": Principal(grants=(GRANT,))}), hash_api_key("key")
)


def test_a_reviewer_decides_on_what_others_wrote_where_the_permission_is_granted() -> None:
    assert may_review(INDEX, Identity("ann"), "bob", "review", "dept.sales.x", FACT)
    assert may_review(INDEX, Identity("ann"), "bob", "share.approve", "dept.sales", FACT)
    assert not may_review(INDEX, Identity("ann"), "bob", "review", "dept.sales", DOCUMENT)
    assert not may_review(INDEX, Identity("ann"), "bob", "review", "dept.salesforce", FACT)
    assert not may_review(INDEX, Identity("zoe"), "bob", "review", "dept.sales", FACT)


@pytest.mark.parametrize("method", Method)
def test_nobody_decides_on_their_own_by_whatever_credential(method: Method) -> None:
    assert not may_review(INDEX, Identity("ann", method), "ann", "review", "dept.sales", FACT)


def test_the_bootstrap_administrator_is_no_exception() -> None:
    assert may_review(INDEX, Identity(BOOTSTRAP_ADMIN), "ann", "review", "dept.sales", DOCUMENT)
    assert not may_review(INDEX, Identity(BOOTSTRAP_ADMIN), BOOTSTRAP_ADMIN, "review", "dept.sales", DOCUMENT)


def test_what_nobody_is_known_to_have_written_is_decided_on_by_nobody() -> None:
    assert not may_review(INDEX, Identity("ann"), "", "review", "dept.sales", FACT)
