"""Scores a memory again that was stored while nobody had an opinion of it, once it is embedded."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from dataplane.changes import Change, Commit
from dataplane.codec import next_version, parse_body
from dataplane.errors import StaleVersion
from dataplane.logic.gate_model import GateModel
from dataplane.logic.passing import is_passing
from dataplane.logic.score import score
from dataplane.model import Layer, Memory, Scope, Vector
from dataplane.ports import Clock, RecordStore
from memplane.policy.snapshot import PolicySnapshot
from memplane.v1 import memory_pb2

PRINCIPAL = "memplane"
"""Who is named in the history for what the data plane does by itself."""


@dataclass(frozen=True, slots=True)
class RescoreParts:
    """What scoring again needs of the world; `policy` gives the snapshot in force."""

    store: RecordStore
    gate_model: GateModel
    policy: Callable[[], PolicySnapshot | None]
    clock: Clock


class Rescoring:
    """Lifts what has earned the long-term layer after all."""

    def __init__(self, parts: RescoreParts):
        self._parts = parts

    async def rescore(self, memory: Memory, embedding: Vector, embedding_model: str, deadline_s: float) -> None:
        """One more version, in the long-term layer or scored where it is; nothing where it was scored before."""
        message, snapshot = parse_body(memory), self._parts.policy()
        if not message.provenance.unscored or snapshot is None:
            return
        policies = snapshot.policies.for_namespace(memory.namespace)
        opinion = self._parts.gate_model.opinion(embedding, message.content)
        scored = score(message.content, opinion, policies.rules, policies.write)
        told_us = memory.create_time_us if memory.event_time_us is None else memory.event_time_us
        passes = policies.write.passing and is_passing(message.content, told_us)
        earned = scored.direct or ((scored.value or 0.0) >= policies.write.threshold and not passes)
        layer = Layer.LONG_TERM if earned else memory.layer
        message.provenance.unscored = False
        message.layer = memory_pb2.Layer.ValueType(layer)
        now_us = self._parts.clock.now_us()
        commit = Commit(
            scope=Scope((memory.namespace,)),
            namespace=memory.namespace,
            now_us=now_us,
            principal_id=PRINCIPAL,
            change=Change.UPDATED,
            reason=f"scored {scored.value or 0.0:.2f} once the model was back",
            memory=replace(next_version(memory, message, now_us), layer=layer),
            embedding=embedding,
            embedding_model=embedding_model,
            expected_version=memory.version,
        )
        result = (await self._parts.store.commit([commit], deadline_s))[0]
        if result.error is not None and not isinstance(result.error, StaleVersion):
            raise result.error
