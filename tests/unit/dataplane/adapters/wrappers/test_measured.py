import pytest

from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.wrappers.measured import measured, measured_records
from dataplane.errors import BackendUnavailable
from tests.contract.builders import fields_of


class Observed:
    def __init__(self) -> None:
        self.calls: list[tuple[str, str, str]] = []

    def __call__(self, backend: str, operation: str, outcome: str, seconds: float) -> None:
        assert seconds >= 0
        self.calls.append((backend, operation, outcome))


class Scripted:
    def __init__(self) -> None:
        self.model = "one"

    def plain(self) -> str:
        return "plain"

    async def answer(self, value: int, *, error: Exception | None = None) -> int:
        if error is not None:
            raise error
        return value


async def test_each_async_call_is_counted_with_how_it_ended() -> None:
    observed = Observed()
    port = measured(Scripted(), "cache", observed)
    assert await port.answer(3) == 3
    with pytest.raises(BackendUnavailable):
        await port.answer(3, error=BackendUnavailable("cache"))
    with pytest.raises(ValueError, match="no"):
        await port.answer(3, error=ValueError("no"))
    outcomes = [("cache", "answer", outcome) for outcome in ("ok", "unavailable", "refused")]
    assert observed.calls == outcomes


async def test_properties_stay_live_and_plain_methods_are_not_timed() -> None:
    observed, inner = Observed(), Scripted()
    port = measured(inner, "embedder", observed)
    assert (port.model, port.plain()) == ("one", "plain")
    inner.model = "two"
    assert port.model == "two"
    assert observed.calls == []


async def test_what_a_record_store_gives_to_read_from_is_timed_too() -> None:
    observed = Observed()
    store = measured_records(InMemoryRecordStore(fields_of), observed)
    reads = await store.reads(0, float("inf"))
    await reads.last_position(float("inf"))
    assert observed.calls == [("record_store", "last_position", "ok")]
