"""Writes, changes, removals, projection and rebuilds, with a crash between any two calls of a store: hypothesis draws.

About 25 seconds on a busy machine. `python -m tests.property.test_state_machine 2000` tries more on SQLite.
"""

import asyncio
import sys
import tempfile
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import field_mask_pb2
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.codec import fields_of
from dataplane.ports import RecordStore
from memplane.v1 import maintenance_service_pb2 as maintenance_pb
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.chaos.history import SHARED_WRITER, Entry, marker
from tests.chaos.intents import sentence
from tests.postgres import empty, open_store
from tests.property.mortal_plane import NAMESPACE, Does, MortalPlane, OpenStore

MOST_CALLS = 24
"""Of ports by one call of a client, those in the background included: a crash may come at any of them, or later."""

DEATHS = st.none() | st.tuples(st.integers(0, MOST_CALLS), st.booleans())
KINDS = st.sampled_from([maintenance_pb.INDEX_KIND_VECTOR, maintenance_pb.INDEX_KIND_TEXT])
QUICK = settings(
    max_examples=18,
    stateful_step_count=18,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


class LifeAndDeath(RuleBasedStateMachine):
    """One client of one data plane. Subclasses say where its records lie."""

    own = True

    @abstractmethod
    def open_store(self) -> OpenStore:
        """A new store of its own, and how a life opens it."""

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._intents = 0
        self._heard: list[str] = []
        self._repeatable: list[Callable[[], Entry]] = []
        self._words: list[str] = []
        self.plane = MortalPlane(self.open_store(), self.own)

    @initialize()
    def begin(self) -> None:
        self._runner.run(self.plane.start())

    @rule(shared=st.integers(0, 2) | st.none(), fact=st.sampled_from(["", "a", "b"]), death=DEATHS)
    def write(self, shared: int | None, fact: str, death: tuple[int, bool] | None) -> None:
        """A statement, or, where `shared`, one that was perhaps written before."""
        intent = self._next_intent()
        word = marker(0, 0, intent) if shared is None else marker(0, SHARED_WRITER, shared)
        fact_key = fact if shared is None else ""
        asked = {"ns": NAMESPACE, "subject": "s", "kind": "FACT", "marker": word, "fact_key": fact_key}
        request = pb.WriteMemoryRequest(
            namespace=NAMESPACE, content=sentence(word), subject_id="s", fact_key=fact_key, request_id=f"r{intent}"
        )
        self._words.append(word)
        self._change("write", asked, lambda: self.plane.write(request), intent, death)

    @rule(pick=st.integers(0, 9), death=DEATHS)
    def update(self, pick: int, death: tuple[int, bool] | None) -> None:
        if not self._heard:
            return
        intent = self._next_intent()
        memory_id, word = self._heard[-1 - pick % len(self._heard)], marker(0, 0, intent)
        request = pb.UpdateMemoryRequest(
            memory=memory_pb2.Memory(namespace=NAMESPACE, id=memory_id, content=sentence(word)),
            update_mask=field_mask_pb2.FieldMask(paths=["content"]),
            request_id=f"r{intent}",
        )
        self._words.append(word)
        asked = {"ns": NAMESPACE, "id": memory_id, "marker": word}
        self._change("update", asked, lambda: self.plane.update(request), intent, death)

    @rule(pick=st.integers(0, 9), mode=st.sampled_from(["SOFT", "HARD"]), death=DEATHS)
    def forget(self, pick: int, mode: str, death: tuple[int, bool] | None) -> None:
        if not self._heard:
            return
        intent, memory_id = self._next_intent(), self._heard[-1 - pick % len(self._heard)]
        request = pb.ForgetMemoryRequest(
            namespace=NAMESPACE, id=memory_id, mode=pb.ForgetMode.Value(f"FORGET_MODE_{mode}"), request_id=f"r{intent}"
        )
        asked = {"ns": NAMESPACE, "id": memory_id, "mode": mode}
        self._change("forget", asked, lambda: self.plane.forget(request), intent, death)

    @rule(pick=st.integers(0, 3))
    def try_again(self, pick: int) -> None:
        """A change under its request_id, whatever came of it."""
        if self._repeatable:
            self._hear(self._repeatable[-1 - pick % len(self._repeatable)]())

    @rule(pick=st.integers(0, 9), death=DEATHS)
    def search(self, pick: int, death: tuple[int, bool] | None) -> None:
        if self._words:
            self.plane.death.arm(death)
            self._find(self._words[-1 - pick % len(self._words)])

    @rule(death=DEATHS)
    def project(self, death: tuple[int, bool] | None) -> None:
        """What waits is leased, applied, flushed and settled, unless the process dies of it."""
        self.plane.death.arm(death)
        self._runner.run(self._project())

    async def _project(self) -> None:
        for _ in range(50):
            if self.plane.death.is_dead:
                await self.plane.die()
                return
            await asyncio.sleep(0.002)
        self.plane.death.arm(None)

    @rule(kind=KINDS, death=DEATHS)
    def rebuild(self, kind: maintenance_pb.IndexKind.ValueType, death: tuple[int, bool] | None) -> None:
        async def begun() -> dict[str, str]:
            await self.plane.rebuild(kind)
            return {}

        self.plane.death.arm(death)
        self._runner.run(self.plane.call("rebuild", {}, begun, self._next_intent()))

    @rule(wiped=st.booleans())
    def crash(self, *, wiped: bool) -> None:
        """Between two calls; indexes of one's own may be wiped meanwhile."""
        self._runner.run(self.plane.die(wiped=wiped and self.own))

    def teardown(self) -> None:
        try:
            self._runner.run(self._end())
        finally:
            self._runner.close()

    async def _end(self) -> None:
        await self.plane.come_level()
        for word in dict.fromkeys(self._words):
            await self._found(word)
        report = await self.plane.judged()
        assert report.is_clean, report.violations
        await self.plane.stop()

    def _next_intent(self) -> int:
        self._intents += 1
        return self._intents

    def _change(
        self, method: str, asked: dict[str, Any], does: Does, intent: int, death: tuple[int, bool] | None
    ) -> None:
        tries = 0

        def attempt() -> Entry:
            nonlocal tries
            tries += 1
            return self._runner.run(self.plane.call(method, asked, does, intent, tries - 1))

        self.plane.death.arm(death)
        self._hear(attempt())
        self._repeatable.append(attempt)

    def _hear(self, entry: Entry) -> None:
        for memory_id in (entry.told.get("id", ""), *(hit[0] for hit in entry.told.get("hits", ()))):
            if memory_id and memory_id not in self._heard:
                self._heard.append(memory_id)

    def _find(self, word: str) -> None:
        self._hear(self._runner.run(self._found(word)))

    async def _found(self, word: str) -> Entry:
        asked = {"ns": NAMESPACE, "marker": word, "token": ""}
        return await self.plane.call("search", asked, lambda: self.plane.search(sentence(word)), self._next_intent())


def on_sqlite(*, own: bool) -> type[LifeAndDeath]:
    """Each example in a folder of its own."""
    indexes_are_own = own

    class OnSqlite(LifeAndDeath):
        own = indexes_are_own

        def open_store(self) -> OpenStore:
            self._folder = tempfile.TemporaryDirectory()
            path = Path(self._folder.name) / "records.sqlite3"

            async def opened() -> RecordStore:
                return await SqliteRecordStore.open(
                    path, options=SqliteOptions(synchronous_full=False), fields_of=fields_of
                )

            return opened

        def teardown(self) -> None:
            super().teardown()
            self._folder.cleanup()

    return OnSqlite


@pytest.mark.slow
@pytest.mark.parametrize("own", [True, False])
def test_no_crash_loses_doubles_or_brings_back_anything_on_sqlite(*, own: bool) -> None:
    run_state_machine_as_test(on_sqlite(own=own), settings=QUICK)


@pytest.mark.slow
def test_no_crash_loses_doubles_or_brings_back_anything_on_postgresql(postgres_options: PostgresOptions) -> None:
    class OnPostgres(LifeAndDeath):
        own = False

        def open_store(self) -> OpenStore:
            empty(postgres_options)
            return lambda: open_store(postgres_options, fields_of)

    run_state_machine_as_test(OnPostgres, settings=settings(QUICK, max_examples=8))


if __name__ == "__main__":
    for is_own in (True, False):
        many = settings(QUICK, max_examples=int(sys.argv[1]), derandomize=False, stateful_step_count=40)
        run_state_machine_as_test(on_sqlite(own=is_own), settings=many)
