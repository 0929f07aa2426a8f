"""Whatever nodes do, in whatever order: the control plane never calls a fleet complete that is not."""

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.fleet import Fleet, Target
from memplane.v1 import policy_pb2

NODES = ("a", "b", "c")
STEPS = st.tuples(
    st.sampled_from(("publish", "connect", "disconnect", "send", "ack", "nack", "tell")),
    st.sampled_from(NODES),
    st.integers(1, 3),
)


class Model:
    """What is true of each node, kept in the plainest way."""

    def __init__(self) -> None:
        self.fleet = Fleet()
        self.sessions: dict[str, int] = {}
        self.serves: dict[str, Target] = {}
        self.refused: dict[str, set[str]] = {}
        self.generation = 0

    def take(self, step: str, node_id: str, number: int) -> None:
        target = self.fleet.target
        if step == "publish":
            self.generation += 1
            self.fleet.publish(Target(f"sha256:{number}", self.generation))
        elif step == "connect":
            serves = self.serves.setdefault(node_id, Target())
            self.refused.setdefault(node_id, set()).discard(serves.version)
            self.sessions[node_id] = self.fleet.connect(policy_pb2.NodeInfo(node_id=node_id), serves, 1)
        elif step == "disconnect" and node_id in self.sessions:
            self.fleet.disconnect(node_id, self.sessions.pop(node_id), 1)
        elif node_id in self.sessions and target.generation:
            self.answer(step, node_id, target)

    def answer(self, step: str, node_id: str, target: Target) -> None:
        if step == "send" and self.fleet.node(node_id).wants(target):
            self.fleet.sent(node_id, target)
        elif step == "ack":
            self.serves[node_id] = target
            self.refused[node_id].discard(target.version)
            self.fleet.acked(node_id, target, 1)
        elif step == "nack" and self.serves[node_id] != target:  # what it serves it has accepted
            self.refused[node_id].add(target.version)
            self.fleet.nacked(node_id, target, "no")
        elif step == "tell":
            self.fleet.tells(node_id, self.serves[node_id], 1)


@settings(max_examples=300)
@given(st.lists(STEPS, max_size=40))
def test_the_fleet_tells_the_truth_after_any_history(steps: list[tuple[str, str, int]]) -> None:
    model = Model()
    for step, node_id, number in steps:
        model.take(step, node_id, number)
        target = model.fleet.target
        summary = model.fleet.propagation(target)
        assert summary.connected == len(model.sessions) == summary.acked + summary.nacked + summary.pending
        serving = all(model.serves[name] == target for name in model.sessions)
        assert not summary.complete or (serving and model.sessions)
        for name in model.sessions:
            refused = target.version in model.refused[name]
            assert not (refused and model.fleet.node(name).wants(target))
            assert (model.fleet.node(name).state(target) == policy_pb2.SYNC_STATE_ERROR) == refused
