import asyncio
from dataclasses import dataclass, field

import pytest

from dataplane.server.waiting_line import LONG_S, PLACES_OF_ONE, Ticket, WaitingLine
from memplane.errors import Overloaded
from memplane.policy.degradation import Admission

MIB = 1 << 20


@dataclass
class Rig:
    """A line whose limits may change, and what it told."""

    limits: Admission
    seen: list[str] = field(default_factory=list)
    came_in: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.line = WaitingLine(lambda: self.limits, lambda outcome, _seconds: self.seen.append(outcome))

    def ticket(self, namespace: str, cost: int = 1, size: int = 0) -> Ticket:
        return Ticket(tuple(namespace.split(".")), cost, size)

    async def enter(self, ticket: Ticket, within_s: float = 60.0) -> Ticket:
        await self.line.enter(ticket, asyncio.get_running_loop().time() + within_s)
        self.came_in.append(".".join(ticket.path))
        return ticket

    async def arrive(self, *tickets: Ticket) -> list[asyncio.Task[Ticket]]:
        """All stand in line, in this order."""
        tasks = [asyncio.create_task(self.enter(ticket)) for ticket in tickets]
        await turns()
        return tasks


async def turns() -> None:
    """Lets everything that is ready run."""
    for _ in range(5):
        await asyncio.sleep(0)


def limits(**values: float) -> Admission:
    return Admission.model_validate({"concurrency": 1, "waiting": 3, "max_wait_s": 60.0, **values})


async def test_who_finds_room_does_not_wait_and_who_does_not_comes_in_when_a_place_is_left() -> None:
    rig = Rig(limits())
    first = await rig.enter(rig.ticket("a"))
    (second,) = await rig.arrive(rig.ticket("a"))
    assert not second.done()
    assert (rig.line.running_count, rig.line.waiting_count) == (1, 1)
    rig.line.leave(first)
    rig.line.leave(await second)
    assert (rig.line.running_count, rig.line.running_places, rig.line.waiting_count) == (0, 0, 0)
    assert rig.seen == ["admitted", "admitted"]


async def test_a_full_line_refuses_the_newest_of_whoever_fills_it_and_not_the_quiet_one_who_comes() -> None:
    rig = Rig(limits())
    held = await rig.enter(rig.ticket("noisy"))
    noisy = await rig.arrive(*(rig.ticket(f"noisy.n{number}") for number in range(3)))
    (quiet,) = await rig.arrive(rig.ticket("quiet"))
    with pytest.raises(Overloaded) as refusal:
        await noisy[2]
    assert 0.5 <= refusal.value.retry_after_s <= 1.0
    rig.line.leave(held)
    await turns()
    assert rig.came_in == ["noisy", "quiet"]
    rig.line.leave(await quiet)
    for each in noisy[:2]:
        rig.line.leave(await each)
    assert rig.seen.count("refused") == 1


async def test_those_who_are_refused_are_told_different_times() -> None:
    rig = Rig(limits(waiting=0))
    held = await rig.enter(rig.ticket("a"))
    told = set()
    for _ in range(16):
        with pytest.raises(Overloaded) as refusal:
            await rig.enter(rig.ticket("a"))
        told.add(refusal.value.retry_after_s)
    assert len(told) == 16
    rig.line.leave(held)


async def test_the_more_are_refused_the_later_they_are_told_to_come_again() -> None:
    rig = Rig(limits(waiting=0))
    held = await rig.enter(rig.ticket("a"))
    told = []
    for _ in range(2_000):
        with pytest.raises(Overloaded) as refusal:
            await rig.enter(rig.ticket("a"))
        told.append(refusal.value.retry_after_s)
    assert max(told[:16]) <= 1.0
    assert min(told[-16:]) > 5.0
    assert max(told) <= 30.0
    rig.line.leave(held)


async def test_who_hangs_up_leaves_the_line() -> None:
    rig = Rig(limits())
    held = await rig.enter(rig.ticket("a"))
    gone, stays = await rig.arrive(rig.ticket("a"), rig.ticket("a"))
    gone.cancel()
    await turns()
    assert rig.line.waiting_count == 1
    rig.line.leave(held)
    rig.line.leave(await stays)
    assert rig.seen.count("left") == 1


async def test_who_hangs_up_at_the_moment_of_coming_in_holds_no_place() -> None:
    rig = Rig(limits())
    held = await rig.enter(rig.ticket("a"))
    (gone,) = await rig.arrive(rig.ticket("a"))
    rig.line.leave(held)
    gone.cancel()
    await turns()
    assert gone.cancelled()
    assert rig.line.running_count == 0


async def test_nobody_waits_beyond_the_policys_time_or_his_own_deadline() -> None:
    rig = Rig(limits(max_wait_s=0.0))
    held = await rig.enter(rig.ticket("a"))
    with pytest.raises(Overloaded):
        await rig.enter(rig.ticket("a"))
    rig.limits = limits()
    with pytest.raises(Overloaded):
        await rig.enter(rig.ticket("a"), within_s=0.0)
    assert rig.line.waiting_count == 0
    rig.line.leave(held)


async def test_a_large_call_holds_its_share_of_the_places_at_most() -> None:
    rig = Rig(limits(concurrency=8))
    large = [await rig.enter(rig.ticket("noisy", cost=128)) for _ in range(PLACES_OF_ONE)]
    assert rig.line.running_places == 8
    (small,) = await rig.arrive(rig.ticket("quiet"))
    assert not small.done()
    rig.line.leave(large[0])
    rig.line.leave(await small)
    for each in large[1:]:
        rig.line.leave(each)


async def test_bytes_are_bounded_in_line_and_inside() -> None:
    rig = Rig(limits(concurrency=10, waiting=10, waiting_bytes=MIB))
    held = await rig.enter(rig.ticket("noisy", size=MIB - 10))
    waits, surplus, quiet = await rig.arrive(
        rig.ticket("noisy", size=MIB - 10), rig.ticket("noisy", size=MIB - 10), rig.ticket("quiet", size=10)
    )
    with pytest.raises(Overloaded):
        await surplus
    assert rig.line.waiting_bytes <= MIB
    assert rig.line.running_bytes <= MIB
    rig.line.leave(held)
    for each in (waits, quiet):
        rig.line.leave(await each)


async def test_a_request_larger_than_the_limit_runs_alone() -> None:
    rig = Rig(limits(concurrency=10, waiting_bytes=MIB))
    rig.line.leave(await rig.enter(rig.ticket("a", size=2 * MIB)))


async def test_between_two_parts_of_long_work_others_come_first_and_the_work_goes_on_before_its_like() -> None:
    rig = Rig(limits())
    batch = await rig.enter(rig.ticket("noisy", cost=128))
    alike, quiet = await rig.arrive(rig.ticket("noisy"), rig.ticket("quiet"))
    more = asyncio.create_task(rig.line.again(batch, 128))
    await turns()
    assert rig.came_in == ["noisy", "quiet"]
    rig.line.leave(await quiet)
    await more
    assert not alike.done()
    rig.line.leave(batch)
    rig.line.leave(await alike)


async def test_long_work_that_was_begun_is_never_refused_and_counts_as_waiting() -> None:
    rig = Rig(limits(waiting=1))
    batch, other = await rig.enter(rig.ticket("a")), rig.ticket("b")
    (waits,) = await rig.arrive(other)
    more = asyncio.create_task(rig.line.again(batch, 1))
    await waits
    with pytest.raises(Overloaded):
        await rig.enter(rig.ticket("c"))
    assert not more.done()
    rig.line.leave(other)
    await more
    rig.line.leave(batch)


async def test_long_work_whose_caller_hangs_up_between_parts_holds_nothing() -> None:
    rig = Rig(limits())
    batch = await rig.enter(rig.ticket("a"))
    (other,) = await rig.arrive(rig.ticket("b"))
    more = asyncio.create_task(rig.line.again(batch, 1))
    await turns()
    more.cancel()
    await turns()
    rig.line.leave(batch)
    rig.line.leave(await other)
    assert (rig.line.running_count, rig.line.waiting_count) == (0, 0)


async def test_a_new_policy_counts_from_the_next_step_on() -> None:
    rig = Rig(limits())
    held = await rig.enter(rig.ticket("a"))
    waits = await rig.arrive(rig.ticket("a"), rig.ticket("a"))
    rig.limits = limits(concurrency=4)
    fourth = await rig.enter(rig.ticket("b"))
    for ticket in (held, fourth, *[await each for each in waits]):
        rig.line.leave(ticket)
    assert rig.line.running_places == 0


async def test_refusals_that_go_on_are_told_and_those_of_long_ago_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    rig, now_s = Rig(limits(waiting=0)), [1_000.0]
    monkeypatch.setattr(rig.line, "_now_s", lambda: now_s[0])
    held = await rig.enter(rig.ticket("a"))
    assert rig.line.refusing_for_s() == 0.0
    for _ in range(4):
        with pytest.raises(Overloaded):
            await rig.enter(rig.ticket("a"))
        now_s[0] += LONG_S / 2
    assert rig.line.refusing_for_s() == 2 * LONG_S
    now_s[0] += LONG_S
    assert rig.line.refusing_for_s() == 0.0
    rig.line.leave(held)
