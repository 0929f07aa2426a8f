from dataclasses import replace

from dataplane.changes import OperationRecord
from dataplane.ports import RecordStore
from memplane.process import SystemClock

HOUR_US = 3_600_000_000


def operation_of(name: str = "operations/1", **changes: object) -> OperationRecord:
    now_us = SystemClock().now_us()
    begun = OperationRecord(
        name=name,
        principal_id="alice",
        namespace="acme.sales",
        create_time_us=now_us,
        update_time_us=now_us,
        expire_time_us=now_us + HOUR_US,
        is_done=False,
        metadata=b"\x00metadata",
    )
    return replace(begun, **changes)  # type: ignore[arg-type]  # fields by name


async def test_an_operation_is_found_by_name_as_it_was_saved(store: RecordStore, deadline_s: float) -> None:
    operation = operation_of()
    await store.save_operations([operation], deadline_s)
    assert await store.find_operation(operation.name, deadline_s) == operation
    assert await store.find_operation("operations/2", deadline_s) is None


async def test_the_later_state_stands(store: RecordStore, deadline_s: float) -> None:
    begun = operation_of()
    later = replace(begun, update_time_us=begun.update_time_us + 5, metadata=b"half")
    await store.save_operations([begun], deadline_s)
    await store.save_operations([later], deadline_s)
    await store.save_operations([begun], deadline_s)
    assert await store.find_operation(begun.name, deadline_s) == later


async def test_two_states_of_one_operation_may_come_at_once(store: RecordStore, deadline_s: float) -> None:
    begun = operation_of()
    done = replace(begun, is_done=True, response=b"answer")
    await store.save_operations([begun, done], deadline_s)
    assert await store.find_operation(begun.name, deadline_s) == done


async def test_what_is_done_stays_as_it_is(store: RecordStore, deadline_s: float) -> None:
    done = operation_of(is_done=True, response=b"answer")
    await store.save_operations([done], deadline_s)
    failed = replace(done, update_time_us=done.update_time_us + 5, response=b"", error=b"error")
    await store.save_operations([failed, replace(failed, is_done=False)], deadline_s)
    assert await store.find_operation(done.name, deadline_s) == done


async def test_expired_operations_are_not_found_any_more(store: RecordStore, deadline_s: float) -> None:
    now_us = SystemClock().now_us()
    await store.save_operations(
        [operation_of("operations/old", expire_time_us=now_us - HOUR_US), operation_of("operations/new")], deadline_s
    )
    await store.save_operations([], deadline_s)
    assert await store.find_operation("operations/old", deadline_s) is None
    assert [item.name for item in await store.list_operations("", 10, deadline_s)] == ["operations/new"]


async def test_operations_are_listed_by_name_in_pages(store: RecordStore, deadline_s: float) -> None:
    operations = [operation_of(f"operations/{number}", namespace="") for number in (3, 1, 2)]
    await store.save_operations(operations, deadline_s)
    first = await store.list_operations("", 2, deadline_s)
    assert [item.name for item in first] == ["operations/1", "operations/2"]
    assert await store.list_operations(first[-1].name, 2, deadline_s) == [operations[0]]
    assert await store.list_operations("operations/3", 2, deadline_s) == []


async def test_operations_of_one_principal_are_listed_without_those_of_others(
    store: RecordStore, deadline_s: float
) -> None:
    names = ("ann", "bob", "ann", "bob", "ann")
    operations = [operation_of(f"operations/{number}", principal_id=name) for number, name in enumerate(names)]
    await store.save_operations(operations, deadline_s)
    first = await store.list_operations("", 2, deadline_s, "ann")
    assert [item.name for item in first] == ["operations/0", "operations/2"]
    assert await store.list_operations("operations/2", 2, deadline_s, "ann") == [operations[4]]
    assert await store.list_operations("", 2, deadline_s, "eve") == []


async def test_the_store_itself_can_be_read_and_tells_what_it_is(store: RecordStore, deadline_s: float) -> None:
    reads = await store.reads(0, deadline_s)
    assert await reads.last_position(deadline_s) == 0
    examination = await store.examine(deadline_s)
    assert examination.server
    assert examination.problems == ()


async def test_a_failure_gives_way_to_a_success_alone(store: RecordStore, deadline_s: float) -> None:
    failed = operation_of(is_done=True, error=b"error")
    await store.save_operations([failed], deadline_s)
    later = replace(failed, update_time_us=failed.update_time_us + 5)
    for other in (replace(later, is_done=False, error=b""), replace(later, error=b"another")):
        await store.save_operations([other], deadline_s)
        assert await store.find_operation(failed.name, deadline_s) == failed
    succeeded = replace(later, error=b"", response=b"answer")
    await store.save_operations([succeeded], deadline_s)
    assert await store.find_operation(failed.name, deadline_s) == succeeded
