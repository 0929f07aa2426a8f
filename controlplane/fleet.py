"""The data planes as the control plane sees them. No I/O and no clock: what happened, and when, is told.

States of a node against the version and generation in force:
ERROR     it refused this version;
SYNCED    it serves this version and generation;
NOT_SENT  it serves nothing and nothing was sent to it;
STALE     anything else.
A refused version is not sent again to the same run of a node (`start_time` tells runs apart). One that it refused as
outdated, which a control plane that lags behind another may send, is sent again under a newer generation.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from controlplane.essence import essence
from memplane.errors import Overloaded
from memplane.v1 import policy_pb2

MAX_NODES = 10_000
"""Connected and lost ones together; the longest lost are dropped first."""
MAX_REFUSED = 16
"""Refused versions kept of each node."""
_COALESCE_S = 0.01
"""Many answers come at once, and counting takes time in proportion to the fleet. Unmeasured."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is in force. Generation 0: nothing."""

    version: str = ""
    generation: int = 0


@dataclass(slots=True)
class Node:
    """One data plane. Times are microseconds since 1970 UTC, 0 for never. `wake` is set when its stream should look.

    `refused` holds the versions that this run of it refused, oldest first, and why. `confirmed_us` is when it was last
    heard while what it serves from was in force. `change` grows with everything that a watch is to see.
    """

    info: policy_pb2.NodeInfo
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    session: int = 0
    serves: Target = field(default_factory=Target)
    sent: Target = field(default_factory=Target)
    refused: dict[str, str] = field(default_factory=dict)
    last_seen_us: int = 0
    lost_us: int = 0
    ack_us: int = 0
    confirmed_us: int = 0
    change: int = 0
    report: policy_pb2.NodeReport = field(default_factory=policy_pb2.NodeReport)
    essence: bytes = b""

    @property
    def connected(self) -> bool:
        """True while a stream of it is open."""
        return self.session != 0

    def state(self, target: Target) -> policy_pb2.SyncState.ValueType:
        """How it stands to what is in force."""
        if self.refusal_of(target) is not None:
            return policy_pb2.SYNC_STATE_ERROR
        if target.generation and self.serves == target:
            return policy_pb2.SYNC_STATE_SYNCED
        if not self.serves.generation and not self.sent.generation:
            return policy_pb2.SYNC_STATE_NOT_SENT
        return policy_pb2.SYNC_STATE_STALE

    def wants(self, target: Target) -> bool:
        """True when what is in force should be sent to it now."""
        outdated = target.generation and target not in (self.serves, self.sent)
        return bool(outdated) and self.refusal_of(target) is None

    def refusal_of(self, target: Target) -> str | None:
        """Why it refused this; None: it did not."""
        return self.refused.get(target.version) or self.refused.get(_as_outdated(target))

    def refuse(self, target: Target, why: str) -> None:
        """Notes a refusal. Of what is not newer than what it serves, the generation was wrong, not the content."""
        outdated = target.generation <= self.serves.generation
        self.refused[_as_outdated(target) if outdated else target.version] = why
        if len(self.refused) > MAX_REFUSED:
            del self.refused[next(iter(self.refused))]


class Fleet:
    """Every data plane that has been heard, by node id. Belongs to one event loop."""

    def __init__(self, max_nodes: int = MAX_NODES):
        self.target = Target()
        self._max_nodes = max_nodes
        self._nodes: OrderedDict[str, Node] = OrderedDict()
        self._sessions = 0
        self._changes = 0
        self._changed = asyncio.Event()

    def connect(self, info: policy_pb2.NodeInfo, serves: Target, now_us: int) -> int:
        """Starts a session of a node, which ends any older one of it; returns its number. Overloaded when full."""
        known = self._nodes.get(info.node_id)
        if known is None:
            self._make_room()
        else:
            known.wake.set()
        self._sessions += 1
        node = Node(info, session=self._sessions, serves=serves, last_seen_us=now_us)
        if known is not None and known.info.start_time == info.start_time:
            _carry_over(known, node)
        self._nodes[info.node_id] = node
        self._confirm(node, now_us)
        self._announce(node)
        return self._sessions

    def disconnect(self, node_id: str, session: int, now_us: int) -> None:
        """Ends a session; nothing happens when a newer one has replaced it."""
        if self.owns(node_id, session):
            node = self._nodes[node_id]
            node.session, node.lost_us = 0, now_us
            self._nodes.move_to_end(node_id)
            self._announce(node)

    def owns(self, node_id: str, session: int) -> bool:
        """True while this session is the node's newest."""
        node = self._nodes.get(node_id)
        return node is not None and node.session == session

    def node(self, node_id: str) -> Node:
        """A node that has been heard; KeyError otherwise."""
        return self._nodes[node_id]

    def heard(self, node_id: str, report: policy_pb2.NodeReport | None, now_us: int) -> None:
        """A sign of life, perhaps with news. Counts, lags and latencies alone are none that a watch is woken for."""
        node = self._nodes[node_id]
        node.last_seen_us = now_us
        self._confirm(node, now_us)
        if report is not None:
            before, node.essence, node.report = node.essence, essence(report), report
            if node.essence != before:
                self._announce(node)

    def tells(self, node_id: str, serves: Target, now_us: int) -> None:
        """The node says what it serves from."""
        node = self._nodes[node_id]
        if node.serves != serves:
            node.serves, node.confirmed_us = serves, 0
            self._confirm(node, now_us)
            self._announce(node)

    def sent(self, node_id: str, target: Target) -> None:
        """A snapshot went out and waits for its answer."""
        node = self._nodes[node_id]
        node.sent = target
        self._announce(node)

    def acked(self, node_id: str, target: Target, now_us: int) -> None:
        """The node accepted what was sent."""
        node = self._nodes[node_id]
        node.serves, node.ack_us, node.confirmed_us = target, now_us, now_us
        node.refused.pop(target.version, None)
        self._announce(node)

    def nacked(self, node_id: str, target: Target, error_detail: str) -> None:
        """The node refused what was sent, and keeps what it had."""
        node = self._nodes[node_id]
        node.refuse(target, error_detail)
        self._announce(node)

    def publish(self, target: Target) -> None:
        """Something else is in force."""
        self.target = target
        self.wake_all()
        self._announce(*self._nodes.values())

    def wake_all(self) -> None:
        """Makes every stream and every watch look at once."""
        for node in self._nodes.values():
            node.wake.set()
        self._announce()

    @property
    def size(self) -> int:
        """How many nodes are known, lost ones included."""
        return len(self._nodes)

    @property
    def changes(self) -> int:
        """Grows with everything that a watch is to see."""
        return self._changes

    async def changed_since(self, change: int) -> None:
        """Waits until `changes` is above `change`."""
        while self._changes <= change:
            await self._changed.wait()

    def changed(self, change: int) -> list[str]:
        """Ids of the nodes that changed after `change`, in order."""
        return sorted(node_id for node_id, node in self._nodes.items() if node.change > change)

    def ids(self) -> frozenset[str]:
        """Ids of all that are known."""
        return frozenset(self._nodes)

    def connected_ids(self) -> frozenset[str]:
        """Ids of the nodes with an open stream."""
        return frozenset(node_id for node_id, node in self._nodes.items() if node.connected)

    def propagation(self, target: Target, expected: Iterable[str] = ()) -> policy_pb2.PropagationSummary:
        """How far a target has come; not complete while an `expected` node, even a lost one, has not accepted it."""
        summary = policy_pb2.PropagationSummary()
        for node in self._nodes.values():
            if not node.connected:
                summary.lost += node.serves != target
                continue
            summary.connected += 1
            state = node.state(target)
            summary.acked += state == policy_pb2.SYNC_STATE_SYNCED
            summary.nacked += state == policy_pb2.SYNC_STATE_ERROR
        summary.pending = summary.connected - summary.acked - summary.nacked
        summary.complete = 0 < summary.connected == summary.acked and all(
            node_id in self._nodes and self._nodes[node_id].serves == target for node_id in expected
        )
        return summary

    async def wait_for_acks(
        self, target: Target, expected: Iterable[str], timeout_s: float
    ) -> policy_pb2.PropagationSummary:
        """Waits until every connected node has answered, something newer is in force, or time is up."""
        try:
            async with asyncio.timeout(timeout_s):
                while self.target == target and self.propagation(target).pending:
                    await self._changed.wait()
                    await asyncio.sleep(_COALESCE_S)
        except TimeoutError:
            pass
        return self.propagation(target, expected)

    def page(self, after: str, page_size: int, now_us: int) -> list[policy_pb2.DataPlaneStatus]:
        """Statuses in the order of node ids, those above `after`."""
        names = sorted(name for name in self._nodes if name > after)[:page_size]
        return [self.status(name, now_us) for name in names]

    def counts(self) -> Counter[tuple[policy_pb2.SyncState.ValueType, bool]]:
        """How many nodes there are of each state, connected or not."""
        return Counter((node.state(self.target), node.connected) for node in self._nodes.values())

    def status(self, node_id: str, now_us: int) -> policy_pb2.DataPlaneStatus:
        """A node as administrators see it; KeyError for one that was not heard."""
        node = self._nodes[node_id]
        status = policy_pb2.DataPlaneStatus(
            node=node.info,
            sync_state=node.state(self.target),
            version_info=node.serves.version,
            generation=node.serves.generation,
            connected=node.connected,
            error_detail=node.refusal_of(self.target) or "",
            report=node.report,
        )
        status.last_seen_time.FromMicroseconds(node.last_seen_us)
        if node.ack_us:
            status.ack_time.FromMicroseconds(node.ack_us)
        if node.confirmed_us:
            status.policy_age.FromMicroseconds(max(0, now_us - node.confirmed_us))
        if not node.connected:
            status.lost_for.FromMicroseconds(max(0, now_us - node.lost_us))
        return status

    def _confirm(self, node: Node, now_us: int) -> None:
        if self.target.generation and node.serves == self.target:
            node.confirmed_us = now_us

    def _make_room(self) -> None:
        while len(self._nodes) >= self._max_nodes:
            lost = next((name for name, node in self._nodes.items() if not node.connected), None)
            if lost is None:
                raise Overloaded(f"{self._max_nodes} data planes are connected already", retry_after_s=30.0)
            del self._nodes[lost]
            self._announce()

    def _announce(self, *nodes: Node) -> None:
        self._changes += 1
        for node in nodes:
            node.change = self._changes
        self._changed.set()
        self._changed = asyncio.Event()


def _as_outdated(target: Target) -> str:
    """Stands for one generation of a version in `Node.refused`."""
    return f"{target.version}@{target.generation}"


def _carry_over(known: Node, node: Node) -> None:
    node.ack_us, node.report, node.essence = known.ack_us, known.report, known.essence
    if node.serves == known.serves:
        node.confirmed_us = known.confirmed_us
    node.refused = {version: why for version, why in known.refused.items() if version != node.serves.version}
