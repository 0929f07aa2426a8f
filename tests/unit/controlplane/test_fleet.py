import asyncio

import pytest

from controlplane.fleet import MAX_REFUSED, Fleet, Target
from memplane.errors import Overloaded
from memplane.v1 import policy_pb2

V1, V2 = Target("sha256:1", 1), Target("sha256:2", 2)
NOTHING = Target()


def info(node_id: str, start_s: int = 1) -> policy_pb2.NodeInfo:
    node = policy_pb2.NodeInfo(node_id=node_id)
    node.start_time.FromSeconds(start_s)
    return node


def state_of(fleet: Fleet, node_id: str) -> policy_pb2.SyncState.ValueType:
    return fleet.node(node_id).state(fleet.target)


def test_a_node_that_serves_nothing_and_was_sent_nothing_is_not_sent() -> None:
    fleet = Fleet()
    fleet.connect(info("a"), NOTHING, 1)
    assert state_of(fleet, "a") == policy_pb2.SYNC_STATE_NOT_SENT


def test_a_node_with_the_version_in_force_is_synced_and_wants_nothing() -> None:
    fleet = Fleet()
    fleet.publish(V1)
    fleet.connect(info("a"), V1, 1)
    assert state_of(fleet, "a") == policy_pb2.SYNC_STATE_SYNCED
    assert not fleet.node("a").wants(V1)


def test_the_same_version_of_an_older_generation_is_stale_and_sent() -> None:
    fleet = Fleet()
    fleet.publish(Target("sha256:1", 3))
    fleet.connect(info("a"), V1, 1)
    assert state_of(fleet, "a") == policy_pb2.SYNC_STATE_STALE
    assert fleet.node("a").wants(fleet.target)


def test_what_was_sent_is_not_sent_again_while_its_answer_is_due() -> None:
    fleet = Fleet()
    fleet.publish(V1)
    fleet.connect(info("a"), NOTHING, 1)
    fleet.sent("a", V1)
    assert not fleet.node("a").wants(V1)
    assert state_of(fleet, "a") == policy_pb2.SYNC_STATE_STALE


def test_a_refused_version_is_not_sent_again_even_after_a_reconnect_until_another_comes() -> None:
    fleet = Fleet()
    fleet.publish(V1)
    session = fleet.connect(info("a"), NOTHING, 1)
    fleet.sent("a", V1)
    fleet.nacked("a", V1, "no")
    fleet.disconnect("a", session, 2)
    fleet.connect(info("a"), NOTHING, 2)
    assert not fleet.node("a").wants(V1)
    assert state_of(fleet, "a") == policy_pb2.SYNC_STATE_ERROR
    assert fleet.node("a").wants(V2)


def test_a_refused_version_is_not_sent_when_it_comes_back_under_a_higher_generation() -> None:
    fleet = Fleet()
    fleet.publish(V1)
    fleet.connect(info("a"), NOTHING, 1)
    fleet.nacked("a", V1, "no")
    fleet.publish(V2)
    fleet.acked("a", V2, 2)
    assert fleet.page("", 1, 9_000_000)[0].error_detail == ""
    fleet.publish(Target(V1.version, 3))
    assert not fleet.node("a").wants(fleet.target)
    assert fleet.page("", 1, 9_000_000)[0].error_detail == "no"


def test_what_a_node_refused_as_outdated_is_sent_to_it_again_under_a_newer_generation() -> None:
    fleet = Fleet()
    fleet.publish(V1)  # a control plane that lags behind the one that the node comes from
    fleet.connect(info("a"), V2, 1)
    fleet.sent("a", V1)
    fleet.nacked("a", V1, "generation 1 is older than 2")
    assert state_of(fleet, "a") == policy_pb2.SYNC_STATE_ERROR
    assert not fleet.node("a").wants(V1)
    again = Target(V1.version, 3)
    fleet.publish(again)
    assert fleet.node("a").wants(again)
    fleet.acked("a", again, 2)
    assert state_of(fleet, "a") == policy_pb2.SYNC_STATE_SYNCED


def test_a_node_that_refuses_everything_takes_bounded_memory() -> None:
    fleet = Fleet()
    fleet.connect(info("a"), NOTHING, 1)
    for number in range(1, 100):
        fleet.nacked("a", Target(f"sha256:{number}", number), "no")
    assert len(fleet.node("a").refused) == MAX_REFUSED
    assert "sha256:99" in fleet.node("a").refused


def test_a_new_run_of_a_node_is_sent_what_the_old_run_refused() -> None:
    fleet = Fleet()
    fleet.publish(V1)
    fleet.connect(info("a", start_s=1), NOTHING, 1)
    fleet.nacked("a", V1, "no")
    fleet.connect(info("a", start_s=2), NOTHING, 2)
    assert fleet.node("a").wants(V1)


def test_a_newer_stream_of_a_node_replaces_the_older_one() -> None:
    fleet = Fleet()
    older = fleet.connect(info("a"), NOTHING, 1)
    newer = fleet.connect(info("a"), NOTHING, 2)
    fleet.disconnect("a", older, 2)
    assert fleet.owns("a", newer)
    assert not fleet.owns("a", older)
    assert fleet.node("a").connected


def test_the_longest_lost_nodes_make_room_for_new_ones() -> None:
    fleet = Fleet(max_nodes=3)
    sessions = {name: fleet.connect(info(name), NOTHING, 1) for name in ("a", "b", "c")}
    fleet.disconnect("b", sessions["b"], 2)
    fleet.disconnect("a", sessions["a"], 2)
    fleet.connect(info("d"), NOTHING, 2)
    assert [status.node.node_id for status in fleet.page("", 10, 9_000_000)] == ["a", "c", "d"]


def test_a_full_fleet_of_connected_nodes_refuses_another() -> None:
    fleet = Fleet(max_nodes=1)
    fleet.connect(info("a"), NOTHING, 1)
    with pytest.raises(Overloaded):
        fleet.connect(info("b"), NOTHING, 1)


def test_propagation_counts_connected_nodes_only() -> None:
    fleet = Fleet()
    fleet.publish(V1)
    for name in ("acked", "nacked", "pending"):
        fleet.connect(info(name), NOTHING, 1)
    fleet.disconnect("lost", fleet.connect(info("lost"), NOTHING, 1), 2)
    fleet.acked("acked", V1, 2)
    fleet.nacked("nacked", V1, "no")
    assert fleet.propagation(V1) == policy_pb2.PropagationSummary(connected=3, acked=1, nacked=1, pending=1, lost=1)


def test_propagation_to_nobody_is_not_complete() -> None:
    assert not Fleet().propagation(V1).complete


def test_propagation_is_not_complete_while_a_node_of_before_is_lost() -> None:
    fleet = Fleet()
    fleet.publish(V1)
    fleet.connect(info("a"), V1, 1)
    session = fleet.connect(info("b"), NOTHING, 1)
    expected = fleet.connected_ids()
    fleet.disconnect("b", session, 2)
    assert fleet.propagation(V1).complete
    assert not fleet.propagation(V1, expected).complete


async def test_waiting_ends_when_every_node_has_answered() -> None:
    fleet = Fleet()
    fleet.publish(V1)
    for name in ("a", "b"):
        fleet.connect(info(name), NOTHING, 1)
    waiting = asyncio.create_task(fleet.wait_for_acks(V1, fleet.connected_ids(), 60.0))
    await asyncio.sleep(0)
    fleet.acked("a", V1, 2)
    fleet.nacked("b", V1, "no")
    summary = await waiting
    assert (summary.acked, summary.nacked, summary.complete) == (1, 1, False)


async def test_waiting_ends_when_time_is_up_and_says_what_is_pending() -> None:
    fleet = Fleet()
    fleet.publish(V1)
    fleet.connect(info("a"), NOTHING, 1)
    summary = await fleet.wait_for_acks(V1, fleet.connected_ids(), 0.01)
    assert (summary.pending, summary.complete) == (1, False)


async def test_waiting_ends_when_something_newer_is_in_force() -> None:
    fleet = Fleet()
    fleet.publish(V1)
    fleet.connect(info("a"), NOTHING, 1)
    waiting = asyncio.create_task(fleet.wait_for_acks(V1, fleet.connected_ids(), 60.0))
    await asyncio.sleep(0)
    fleet.publish(V2)
    assert not (await waiting).complete


def test_pages_follow_node_ids() -> None:
    fleet = Fleet()
    for name in ("c", "a", "b"):
        fleet.connect(info(name), NOTHING, 1)
    assert [status.node.node_id for status in fleet.page("", 2, 9_000_000)] == ["a", "b"]
    assert [status.node.node_id for status in fleet.page("b", 2, 9_000_000)] == ["c"]


def test_a_status_tells_what_the_node_said() -> None:
    fleet = Fleet()
    fleet.publish(V2)
    fleet.connect(info("a"), V1, 5_000_000)
    fleet.acked("a", V2, 6_000_000)
    fleet.heard("a", policy_pb2.NodeReport(memory_count=7), 7_000_000)
    status = fleet.page("", 1, 9_000_000)[0]
    assert (status.version_info, status.generation, status.connected) == ("sha256:2", 2, True)
    assert (status.ack_time.seconds, status.last_seen_time.seconds, status.report.memory_count) == (6, 7, 7)


def test_a_node_that_says_it_serves_something_else_is_believed() -> None:
    fleet = Fleet()
    fleet.publish(V2)
    fleet.connect(info("a"), V2, 1)
    fleet.tells("a", V1, 3)
    assert state_of(fleet, "a") == policy_pb2.SYNC_STATE_STALE


def test_the_age_of_a_policy_counts_from_when_it_was_last_heard_in_force() -> None:
    fleet = Fleet()
    fleet.publish(V1)
    fleet.connect(info("a"), V1, 1_000_000)
    fleet.heard("a", None, 3_000_000)
    fleet.publish(V2)
    fleet.heard("a", None, 6_000_000)
    assert fleet.status("a", 9_000_000).policy_age.seconds == 6
    fleet.acked("a", V2, 8_000_000)
    assert fleet.status("a", 9_000_000).policy_age.seconds == 1


def test_the_age_of_a_policy_that_was_never_in_force_here_is_unknown() -> None:
    fleet = Fleet()
    fleet.publish(V2)
    fleet.connect(info("a"), V1, 1)
    assert not fleet.status("a", 9).HasField("policy_age")
    fleet.tells("a", V2, 2)
    assert fleet.status("a", 9).HasField("policy_age")
    fleet.tells("a", V1, 3)
    assert not fleet.status("a", 9).HasField("policy_age")


def test_a_lost_node_stays_and_tells_how_long_it_is_lost() -> None:
    fleet = Fleet()
    fleet.publish(V1)
    session = fleet.connect(info("a"), V1, 1_000_000)
    assert not fleet.status("a", 2_000_000).HasField("lost_for")
    fleet.disconnect("a", session, 2_000_000)
    assert fleet.status("a", 7_000_000).lost_for.seconds == 5
    assert fleet.page("", 1, 7_000_000)[0].policy_age.seconds == 6


def test_lost_nodes_without_the_target_are_counted_beside_a_complete_reload() -> None:
    fleet = Fleet()
    fleet.disconnect("gone", fleet.connect(info("gone"), V1, 1), 2)
    fleet.publish(V2)
    fleet.connect(info("a"), V2, 3)
    assert fleet.propagation(V2) == policy_pb2.PropagationSummary(connected=1, acked=1, complete=True, lost=1)


def test_a_node_that_connects_in_between_keeps_a_reload_from_being_complete() -> None:
    fleet = Fleet()
    fleet.connect(info("a"), V1, 1)
    expected = fleet.connected_ids()
    fleet.publish(V2)
    fleet.acked("a", V2, 2)
    fleet.connect(info("late"), V1, 3)
    assert not fleet.propagation(V2, expected).complete
    fleet.acked("late", V2, 4)
    assert fleet.propagation(V2, expected).complete
