import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dataplane.adapters.age_file import AgeFile
from dataplane.adapters.last_good import LastGoodFile
from dataplane.adapters.policy_stream import MAX_DETAIL_BYTES, PolicyStream, PolicyStreamOptions, pause_s
from dataplane.logic.staleness import AgeNote
from dataplane.policy_holder import PolicyHolder, PolicyOrigin
from memplane.errors import PolicyAbsence
from memplane.policy.codec import to_json
from memplane.policy.degradation import DegradationPolicy
from memplane.policy.model import PolicySet
from memplane.policy.snapshot import sign
from memplane.v1 import policy_discovery_service_pb2 as discovery_pb2
from memplane.v1 import policy_pb2
from tests.deadline import eventually
from tests.unit.dataplane.adapters.scripted_control_plane import (
    END,
    RENEWAL,
    ScriptedControlPlane,
    scripted_control_plane,
    signed_snapshot,
)

KEY = Ed25519PrivateKey.generate()
OTHER_KEY = Ed25519PrivateKey.generate()


class FixtureClock:
    def now_us(self) -> int:
        return 42


def write_public_key(path: Path, *keys: Ed25519PrivateKey) -> None:
    pem = [key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo) for key in keys]
    path.write_bytes(b"".join(pem))


@pytest.fixture
def options(tmp_path: Path) -> PolicyStreamOptions:
    """Nobody listens at the address; the times are short."""
    write_public_key(tmp_path / "signing_key.pub", KEY)
    return PolicyStreamOptions(
        control_address="127.0.0.1:1",
        node_key="node-key",
        node=policy_pb2.NodeInfo(node_id="node-1"),
        trusted_key_file=tmp_path / "signing_key.pub",
        last_good_file=tmp_path / "state" / "last_good.pb",
        backoff_min_s=0.02,
        backoff_max_s=0.05,
        reconnect_spread_s=0.05,
    )


@asynccontextmanager
async def streaming(options: PolicyStreamOptions) -> AsyncIterator[tuple[PolicyHolder, PolicyStream]]:
    holder = PolicyHolder()
    stream = PolicyStream(holder, options, lambda: policy_pb2.NodeReport(memory_count=3), FixtureClock())
    await stream.start()
    try:
        yield holder, stream
    finally:
        await stream.stop()


@pytest.fixture
async def plane(options: PolicyStreamOptions) -> AsyncIterator[tuple[ScriptedControlPlane, PolicyStreamOptions]]:
    async with scripted_control_plane() as scripted:
        yield scripted, replace(options, control_address=scripted.address)


Plane = tuple[ScriptedControlPlane, PolicyStreamOptions]


async def answer(scripted: ScriptedControlPlane, nonce: str) -> discovery_pb2.StreamPoliciesRequest:
    await eventually(lambda: scripted.answer_to(nonce), lambda found: found is not None)
    found = scripted.answer_to(nonce)
    assert found is not None
    return found


async def test_the_first_message_names_the_node_and_carries_its_key_and_report(plane: Plane) -> None:
    scripted, options = plane
    async with streaming(options):
        await eventually(lambda: len(scripted.heard), bool)
    first = scripted.heard[0]
    assert (first.node.node_id, first.version_info, first.generation) == ("node-1", "", 0)
    assert first.report.memory_count == 3
    assert scripted.metadata["authorization"] == "Bearer node-key"


async def test_a_good_snapshot_is_in_force_on_disk_and_acked(plane: Plane) -> None:
    scripted, options = plane
    signed = signed_snapshot(KEY, 1, top_k=9)
    async with streaming(options) as (holder, _):
        scripted.push("n1", signed)
        acked = await answer(scripted, "n1")
        assert holder.current is not None
        assert (await holder.wait_loaded()).version == "sha256:9"
    assert (acked.error_detail, acked.version_info, acked.generation) == ("", "sha256:9", 1)
    assert (holder.origin, holder.loaded_time_us) == (PolicyOrigin.CONTROL_PLANE, 42)
    assert LastGoodFile(options.last_good_file).read() == signed
    assert stat.S_IMODE(options.last_good_file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (signed_snapshot(OTHER_KEY, 2), "not trusted"),
        (policy_pb2.SignedPolicySnapshot(), "not trusted"),
        (sign(policy_pb2.PolicySnapshot(version_info="v", generation=2, policy_json=b"{"), KEY), "InvalidPolicy"),
        (sign(policy_pb2.PolicySnapshot(version_info="v", policy_json=b"{}"), KEY), "generation 0"),
        (signed_snapshot(KEY, 4), "older than 5"),
        (signed_snapshot(KEY, 5, top_k=1), "another content"),
    ],
    ids=["unknown key", "empty", "no JSON", "no generation", "older generation", "same generation, other content"],
)
async def test_a_bad_snapshot_is_refused_whole_and_the_old_one_stays(
    plane: Plane, bad: policy_pb2.SignedPolicySnapshot, says: str
) -> None:
    scripted, options = plane
    async with streaming(options) as (holder, _):
        scripted.push("good", signed_snapshot(KEY, 5))
        await answer(scripted, "good")
        scripted.push("bad", bad)
        nacked = await answer(scripted, "bad")
        assert says in nacked.error_detail
        assert says in holder.problem
        assert len(nacked.error_detail.encode()) <= MAX_DETAIL_BYTES
        assert (nacked.version_info, nacked.generation) == ("sha256:6", 5)
        assert holder.current is not None
        assert holder.current.generation == 5
    kept = LastGoodFile(options.last_good_file).read()
    assert kept == signed_snapshot(KEY, 5)


async def test_a_forged_payload_is_refused(plane: Plane) -> None:
    scripted, options = plane
    forged = signed_snapshot(KEY, 1)
    forged.payload = forged.payload + b" "
    async with streaming(options) as (holder, _):
        scripted.push("n1", forged)
        assert "signature" in (await answer(scripted, "n1")).error_detail
        assert holder.current is None


async def test_what_cannot_be_kept_on_disk_is_in_force_and_kept_as_soon_as_it_can_be(plane: Plane) -> None:
    scripted, options = plane
    options.last_good_file.parent.write_text("a file where the folder should be")
    async with streaming(options) as (holder, _):
        scripted.push("n1", signed_snapshot(KEY, 1))
        assert not (await answer(scripted, "n1")).error_detail
        assert holder.current is not None
        assert "no copy of it could be stored" in holder.problem
        options.last_good_file.parent.unlink()
        scripted.beat(generation=1)
        await eventually(LastGoodFile(options.last_good_file).read, bool)
        await eventually(lambda: holder.problem, lambda problem: not problem)


async def test_old_content_with_a_higher_generation_is_accepted(plane: Plane) -> None:
    scripted, options = plane
    async with streaming(options) as (holder, _):
        for nonce, generation, top_k in (("1", 1, 6), ("2", 2, 7), ("3", 3, 6)):
            scripted.push(nonce, signed_snapshot(KEY, generation, top_k))
            await answer(scripted, nonce)
        assert holder.current is not None
        assert (holder.current.version, holder.current.generation) == ("sha256:6", 3)


async def test_a_heartbeat_is_answered_with_a_report(plane: Plane) -> None:
    scripted, options = plane
    async with streaming(options) as (holder, _):
        scripted.beat()
        await eventually(lambda: len(scripted.heard), lambda count: count == 2)
        assert holder.control_plane_connected
        assert holder.current is None
    assert scripted.heard[1].report.memory_count == 3
    assert scripted.heard[1].response_nonce == ""


async def test_a_heartbeat_for_the_last_good_policy_confirms_it(plane: Plane) -> None:
    scripted, options = plane
    LastGoodFile(options.last_good_file).write(signed_snapshot(KEY, 3))
    async with streaming(options) as (holder, _):
        assert holder.origin is PolicyOrigin.LAST_GOOD
        scripted.beat("sha256:6", 3)
        await eventually(lambda: holder.origin.value, PolicyOrigin.CONTROL_PLANE.value.__eq__)
    assert (scripted.heard[0].version_info, scripted.heard[0].generation) == ("sha256:6", 3)


async def test_an_ended_stream_is_opened_again_and_the_policy_stays(plane: Plane) -> None:
    scripted, options = plane
    async with streaming(options) as (holder, _):
        scripted.push("n1", signed_snapshot(KEY, 1))
        await answer(scripted, "n1")
        scripted.outgoing.put_nowait(END)
        await eventually(lambda: scripted.streams, lambda count: count >= 2)
        assert holder.current is not None
        assert scripted.heard[-1].generation == 1


async def test_a_stream_that_ends_in_good_order_is_no_failure(plane: Plane, caplog: pytest.LogCaptureFixture) -> None:
    scripted, options = plane
    async with streaming(options) as (_, stream):
        for streams, ending in enumerate((RENEWAL, RENEWAL, END), start=1):
            scripted.beat()
            await eventually(lambda: len(scripted.heard), (2 * streams).__le__)  # a greeting and an answer of each
            scripted.outgoing.put_nowait(ending)
            await eventually(lambda: scripted.streams, (streams + 1).__eq__)
        assert stream.failure_count == 0
    assert not caplog.records


async def test_while_a_stream_is_renewed_the_control_plane_counts_as_connected(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted, options = plane
    monkeypatch.setattr("dataplane.adapters.policy_stream._RENEWAL_S", 1e6)
    async with streaming(options) as (holder, _):
        scripted.beat()
        await eventually(lambda: holder.control_plane_connected, bool)
        scripted.outgoing.put_nowait(RENEWAL)
        await eventually(scripted.outgoing.empty, bool)
        assert holder.control_plane_connected


async def test_three_missed_heartbeats_count_as_lost(plane: Plane) -> None:
    scripted, options = plane
    async with streaming(options) as (holder, stream):
        scripted.beat(interval_ms=20)
        await eventually(lambda: scripted.streams, lambda count: count >= 2)
        assert stream.failure_count >= 1
        assert not holder.control_plane_connected


async def test_a_control_plane_that_never_speaks_counts_as_lost(options: PolicyStreamOptions) -> None:
    accepted: list[asyncio.StreamWriter] = []

    async def say_nothing(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)

    server = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    LastGoodFile(options.last_good_file).write(signed_snapshot(KEY, 1))
    silent = replace(options, control_address=f"127.0.0.1:{port}", silence_s=0.2)
    async with streaming(silent) as (holder, stream):
        assert holder.origin is PolicyOrigin.LAST_GOOD
        await eventually(lambda: stream.failure_count, lambda count: count >= 2)
        assert not holder.control_plane_connected
    for writer in accepted:
        writer.close()
    server.close()
    await server.wait_closed()


async def test_without_control_plane_and_last_good_there_is_no_policy(options: PolicyStreamOptions) -> None:
    async with streaming(options) as (holder, stream):
        await eventually(lambda: stream.failure_count, lambda count: count >= 3)
        assert holder.current is None
        assert holder.origin is PolicyOrigin.NONE


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xff not protobuf", signed_snapshot(OTHER_KEY, 1).SerializeToString(), b"\n\x01x"],
    ids=["empty", "garbage", "signed by another key", "unsigned"],
)
async def test_a_bad_last_good_copy_is_ignored_and_told(options: PolicyStreamOptions, content: bytes) -> None:
    options.last_good_file.parent.mkdir()
    options.last_good_file.write_bytes(content)
    async with streaming(options) as (holder, _):
        assert holder.current is None
        assert "last good policy is ignored" in holder.problem


async def test_a_last_good_copy_is_not_trusted_without_the_key_file(options: PolicyStreamOptions) -> None:
    LastGoodFile(options.last_good_file).write(signed_snapshot(KEY, 1))
    options.trusted_key_file.unlink()
    async with streaming(options) as (holder, stream):
        await eventually(lambda: stream.failure_count, bool)
        assert holder.current is None


async def test_a_rotated_key_is_trusted_once_it_stands_in_the_file(plane: Plane) -> None:
    scripted, options = plane
    write_public_key(options.trusted_key_file, KEY, OTHER_KEY)
    async with streaming(options) as (holder, _):
        scripted.push("1", signed_snapshot(KEY, 1))
        scripted.push("2", signed_snapshot(OTHER_KEY, 2))
        assert (await answer(scripted, "2")).error_detail == ""
        assert holder.current is not None
        assert holder.current.generation == 2


def test_data_planes_that_lose_their_control_plane_come_back_spread_over_more_than_four_seconds(tmp_path: Path) -> None:
    options = PolicyStreamOptions("a:1", "key", policy_pb2.NodeInfo(), tmp_path, tmp_path)
    pauses = [pause_s(options, 0, number / 300, was_open=True) for number in range(300)]
    assert max(pauses) - min(pauses) > 4.0
    assert max(sum(start <= pause < start + 1 for pause in pauses) for start in range(8)) < 50


@pytest.mark.parametrize(("failures", "most"), [(1, 1.0), (2, 2.0), (3, 4.0), (5, 10.0), (10_000, 10.0)])
def test_the_wait_after_failures_doubles_up_to_its_ceiling(tmp_path: Path, failures: int, most: float) -> None:
    options = PolicyStreamOptions("a:1", "key", policy_pb2.NodeInfo(), tmp_path, tmp_path)
    assert pause_s(options, failures, 1.0, was_open=False) == most
    assert 0 < pause_s(options, failures, 0.0, was_open=False) <= 0.05


@pytest.mark.parametrize("failures", [1, 2, 5])
def test_who_fails_while_a_control_plane_starts_again_comes_back_as_spread_as_the_others(
    tmp_path: Path, failures: int
) -> None:
    options = PolicyStreamOptions("a:1", "key", policy_pb2.NodeInfo(), tmp_path, tmp_path)
    assert pause_s(options, failures, 1.0, was_open=True) >= options.reconnect_spread_s


def test_the_node_key_is_not_printed(options: PolicyStreamOptions) -> None:
    assert "node-key" not in repr(options)


@pytest.mark.parametrize(
    ("bad", "absence"),
    [
        (signed_snapshot(OTHER_KEY, 2), PolicyAbsence.UNTRUSTED),
        (sign(policy_pb2.PolicySnapshot(version_info="v", generation=2, policy_json=b"{"), KEY), PolicyAbsence.REFUSED),
    ],
    ids=["unknown key", "no JSON"],
)
async def test_why_there_is_no_policy_is_told_also_after_the_next_heartbeat(
    plane: Plane, bad: policy_pb2.SignedPolicySnapshot, absence: PolicyAbsence
) -> None:
    scripted, options = plane
    async with streaming(options) as (holder, _):
        assert holder.absence is PolicyAbsence.NOT_FETCHED
        scripted.beat()
        await eventually(lambda: holder.absence.name, PolicyAbsence.NONE_IN_FORCE.name.__eq__)
        scripted.push("bad", bad)
        await answer(scripted, "bad")
        scripted.beat("v", 2)
        await eventually(lambda: len(scripted.heard), lambda count: count == 4)
        assert holder.absence is absence


async def test_an_unreachable_control_plane_is_why_there_is_no_policy(options: PolicyStreamOptions) -> None:
    async with streaming(options) as (holder, stream):
        await eventually(lambda: stream.failure_count, bool)
        assert holder.absence is PolicyAbsence.NO_CONTROL_PLANE
        options.trusted_key_file.unlink()
        await eventually(lambda: holder.absence.name, PolicyAbsence.NO_TRUSTED_KEY.name.__eq__)


async def test_a_refused_node_key_is_named_by_its_setting(plane: Plane, caplog: pytest.LogCaptureFixture) -> None:
    scripted, options = plane
    scripted.refuses_key = True
    async with streaming(options) as (holder, _):
        await eventually(lambda: holder.absence.name, PolicyAbsence.NODE_KEY_REFUSED.name.__eq__)
    assert "MEMPLANE_DATA_NODE_KEY" in caplog.text


DAY_S = 86_400


def stale_snapshot(generation: int, create_time_us: int = 42) -> policy_pb2.SignedPolicySnapshot:
    """A policy that is stale after an hour without a confirmation."""
    policy = PolicySet(degradation_policy=DegradationPolicy(stale_after_s=3_600, stale_action="deny"))
    message = policy_pb2.PolicySnapshot(version_info="sha256:s", generation=generation, policy_json=to_json(policy))
    message.create_time.FromMicroseconds(create_time_us)
    return sign(message, KEY)


def age_file(options: PolicyStreamOptions) -> AgeFile:
    return AgeFile.beside(options.last_good_file)


@pytest.mark.parametrize(
    ("note", "action"),
    [
        (AgeNote(3, 0.0, 42), None),
        (AgeNote(3, 3_599.0, 42), None),
        (AgeNote(3, 3_600.0, 42), "deny"),
        (AgeNote(3, 0.0, 42 - 3_600 * 1_000_000), "deny"),
        (AgeNote(3, 0.0, 42 + DAY_S * 1_000_000), "deny"),
    ],
    ids=["fresh", "old", "too old", "down for too long", "clock back a day"],
)
async def test_a_last_good_policy_is_as_old_after_a_start_as_it_was_before_until_it_is_confirmed(
    plane: Plane, note: AgeNote, action: str | None
) -> None:
    scripted, options = plane
    LastGoodFile(options.last_good_file).write(stale_snapshot(3))
    age_file(options).write(note)
    async with streaming(options) as (holder, _):
        assert holder.stale_action == action
        scripted.beat("sha256:other", 4)
        await eventually(lambda: holder.heard_time_us, bool)
        assert holder.stale_action == action
        scripted.beat("sha256:s", 3)
        await eventually(lambda: holder.stale_action is None and holder.age_s < 3_599.0, bool)


async def test_a_stale_policy_does_not_become_fresh_by_starting_again_with_the_clock_set_back(
    options: PolicyStreamOptions,
) -> None:
    LastGoodFile(options.last_good_file).write(stale_snapshot(3))
    age_file(options).write(AgeNote(3, 7_200.0, 42 + 2 * DAY_S * 1_000_000))
    for _ in range(3):
        async with streaming(options) as (holder, _):
            assert holder.stale_action == "deny"


async def test_the_age_is_kept_beside_every_policy_that_is_taken(plane: Plane) -> None:
    scripted, options = plane
    async with streaming(options):
        for generation in (1, 2):
            scripted.push(str(generation), stale_snapshot(generation))
            await answer(scripted, str(generation))
            noted = age_file(options).read()
            assert noted is not None
            assert (noted.generation, noted.noted_us, noted.age_s < 60.0) == (generation, 42, True)


async def test_a_control_plane_that_accepts_the_stream_and_never_answers_confirms_nothing(plane: Plane) -> None:
    scripted, options = plane
    LastGoodFile(options.last_good_file).write(stale_snapshot(3))
    age_file(options).write(AgeNote(3, 3_600.0, 42))
    async with streaming(replace(options, silence_s=0.2)) as (holder, stream):
        await eventually(lambda: scripted.streams, lambda count: count >= 2)
        assert stream.failure_count >= 1
        assert (holder.control_plane_connected, holder.heard_time_us, holder.stale_action) == (False, 0, "deny")
