from dataplane.logic.advice import advice
from dataplane.logic.gate_model import Opinion
from dataplane.model import Draft, Kind, Pool


def codes(kind: Kind = Kind.FACT, pool: Pool = Pool.PRIVATE, **outputs: float) -> list[str]:
    return [
        reason.code for reason in advice(Opinion(0.9, outputs), Draft(namespace="n", content="x", kind=kind, pool=pool))
    ]


def test_a_preference_written_as_a_fact_is_told() -> None:
    assert codes(preference=0.9) == ["KIND_PROPOSAL"]
    assert codes(preference=0.9, kind=Kind.PREFERENCE) == []


def test_what_others_may_need_is_proposed_for_the_shared_pool() -> None:
    assert codes(reusable=0.9, sensitive=0.1, preference=0.1) == ["SHARED_POOL_PROPOSAL"]
    assert codes(reusable=0.9, sensitive=0.9) == []
    assert codes(reusable=0.9, pool=Pool.SHARED) == []
