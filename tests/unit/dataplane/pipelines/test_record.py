"""What searches leave behind is written in batches, kept while the store is down, and bounded."""

from typing import Any

from dataplane.changes import AccessRecord, RetrievalRecord
from dataplane.errors import BackendUnavailable
from dataplane.pipelines import record
from dataplane.pipelines.record import Recorder


class Store:
    """Takes records, or says that it cannot."""

    def __init__(self) -> None:
        self.down = False
        self.accesses: list[AccessRecord] = []
        self.retrievals: list[RetrievalRecord] = []

    async def record_accesses(self, accesses: list[AccessRecord], _deadline_s: float) -> None:
        if self.down:
            raise BackendUnavailable("record_store")
        self.accesses += accesses

    async def record_retrievals(self, retrievals: list[RetrievalRecord], _deadline_s: float) -> None:
        if self.down:
            raise BackendUnavailable("record_store")
        self.retrievals += retrievals


def retrieval(number: int) -> RetrievalRecord:
    return RetrievalRecord(f"srch_{number}", "a", "p", number, "v", "q", ())


ACCESS = AccessRecord("mem_1", "a", 1, 0.1, 2.0, 0.1)


async def test_records_wait_while_the_store_is_down_and_are_written_once() -> None:
    store: Any = Store()
    recorder = Recorder(store)
    store.down = True
    recorder.note(retrieval(1), [ACCESS])
    await recorder.flush()
    store.down = False
    await recorder.flush()
    await recorder.flush()
    assert (store.accesses, store.retrievals) == ([ACCESS], [retrieval(1)])


async def test_the_oldest_records_go_when_too_many_wait(monkeypatch: Any) -> None:
    monkeypatch.setattr(record, "MAX_WAITING", 3)
    store: Any = Store()
    recorder = Recorder(store)
    for number in range(5):
        recorder.note(retrieval(number), [])
    await recorder.flush()
    assert [item.search_id for item in store.retrievals] == ["srch_2", "srch_3", "srch_4"]
    assert recorder.dropped == 2
