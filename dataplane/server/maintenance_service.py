"""MaintenanceService over gRPC."""

from dataclasses import dataclass

from google.longrunning import operations_pb2

from dataplane.changes import DeadLetter, SetAsideWrite
from dataplane.pipelines.check_indexes import CheckIndexes, CheckQuestion
from dataplane.pipelines.dead_letters import DeadLetters
from dataplane.pipelines.reindex import Reindexing
from dataplane.pipelines.set_aside import SetAsideWrites
from dataplane.server.callers import Callers, Context, deadline_of
from dataplane.server.checks import Notes
from dataplane.server.tokens import page_token, read_page_token
from memplane.v1 import maintenance_service_pb2 as pb
from memplane.v1 import maintenance_service_pb2_grpc as rpc

KINDS = ("VECTOR", "TEXT")
PREFIXES = {
    pb.INDEX_KIND_UNSPECIFIED: "",
    pb.INDEX_KIND_VECTOR: "vector_index:",
    pb.INDEX_KIND_TEXT: "text_index:",
}
"""How the names of an index's kind begin in the outbox."""
DEFAULT_SAMPLE_SIZE = 1_000
MAX_SAMPLE_SIZE = 100_000
DEFAULT_PAGE_SIZE = 100
MAX_PAGE_SIZE = 1_000
MAX_POSITIONS = 10_000


@dataclass(frozen=True, slots=True)
class Maintenance:
    """What the service offers."""

    checks: CheckIndexes
    reindexing: Reindexing
    dead_letters: DeadLetters
    set_aside: SetAsideWrites


class MaintenanceService(rpc.MaintenanceServiceServicer):
    """Takes requests apart, calls the pipeline, puts the answer together. `callers` tell who calls, once a call."""

    def __init__(self, maintenance: Maintenance, callers: Callers):
        self._maintenance = maintenance
        self._callers = callers

    async def CheckIndexes(  # noqa: N802 - the contract's name
        self, request: pb.CheckIndexesRequest, context: Context
    ) -> pb.CheckIndexesResponse:
        """See the contract."""
        caller = self._callers.of(context)
        notes = Notes()
        notes.enum("index", request.index, KINDS)
        if request.sample_size != 0:
            notes.integer("sample_size", request.sample_size, 1, MAX_SAMPLE_SIZE)
        notes.close()
        question = CheckQuestion(request.index, request.sample_size or DEFAULT_SAMPLE_SIZE, request.full)
        checks = await self._maintenance.checks.check(question, caller, deadline_of(context))
        return pb.CheckIndexesResponse(checks=checks)

    async def Reindex(  # noqa: N802 - the contract's name
        self, request: pb.ReindexRequest, context: Context
    ) -> operations_pb2.Operation:
        """See the contract."""
        caller = self._callers.of(context)
        notes = Notes()
        if not notes.enum("index", request.index, KINDS):
            notes.add("index", f"is required: {' or '.join(KINDS)}")
        request.embedding_model = notes.label("embedding_model", request.embedding_model)
        request.request_id = notes.label("request_id", request.request_id, 128)
        notes.close()
        return await self._maintenance.reindexing.begin(request, caller, deadline_of(context))

    async def ListDeadLetters(  # noqa: N802 - the contract's name
        self, request: pb.ListDeadLettersRequest, context: Context
    ) -> pb.ListDeadLettersResponse:
        """See the contract."""
        caller = self._callers.of(context)
        notes = Notes()
        kind = notes.enum("index", request.index, KINDS)
        if request.page_size != 0:
            notes.integer("page_size", request.page_size, 1, MAX_PAGE_SIZE)
        notes.close()
        size = request.page_size or DEFAULT_PAGE_SIZE
        after = read_page_token(request, caller.principal_id) or (0, "")
        found = await self._maintenance.dead_letters.page(
            PREFIXES[pb.IndexKind.ValueType(kind)], after, size + 1, caller, deadline_of(context)
        )
        shown, more = found[:size], len(found) > size
        return pb.ListDeadLettersResponse(
            dead_letters=[_answer(letter) for letter in shown],
            next_page_token=page_token(request, caller.principal_id, (shown[-1].position, shown[-1].index))
            if more
            else "",
        )

    async def ReplayDeadLetters(  # noqa: N802 - the contract's name
        self, request: pb.ReplayDeadLettersRequest, context: Context
    ) -> pb.ReplayDeadLettersResponse:
        """See the contract."""
        caller = self._callers.of(context)
        notes = Notes()
        if not request.index_name:
            notes.add("index_name", "is required, as DeadLetter.index_name says")
        if len(request.positions) > MAX_POSITIONS:
            notes.add("positions", f"has {len(request.positions)} items; at most {MAX_POSITIONS} are allowed")
        notes.close()
        replayed = await self._maintenance.dead_letters.replay(
            request.index_name, list(request.positions), caller, deadline_of(context)
        )
        return pb.ReplayDeadLettersResponse(replayed_count=replayed)

    async def ListSetAsideWrites(  # noqa: N802 - the contract's name
        self, request: pb.ListSetAsideWritesRequest, context: Context
    ) -> pb.ListSetAsideWritesResponse:
        """See the contract."""
        caller = self._callers.of(context)
        notes = Notes()
        if request.page_size != 0:
            notes.integer("page_size", request.page_size, 1, MAX_PAGE_SIZE)
        notes.close()
        size = request.page_size or DEFAULT_PAGE_SIZE
        _, after_id = read_page_token(request, caller.principal_id) or (0, "")
        found = await self._maintenance.set_aside.page(after_id, size + 1, caller, deadline_of(context))
        shown, more = found[:size], len(found) > size
        return pb.ListSetAsideWritesResponse(
            writes=[_aside(each) for each in shown],
            next_page_token=page_token(request, caller.principal_id, (0, shown[-1].entry_id)) if more else "",
        )

    async def ReplaySetAsideWrites(  # noqa: N802 - the contract's name
        self, request: pb.ReplaySetAsideWritesRequest, context: Context
    ) -> pb.ReplaySetAsideWritesResponse:
        """See the contract."""
        caller = self._callers.of(context)
        notes = Notes()
        if len(request.ids) > MAX_POSITIONS:
            notes.add("ids", f"has {len(request.ids)} items; at most {MAX_POSITIONS} are allowed")
        notes.close()
        replayed = await self._maintenance.set_aside.replay(list(request.ids), caller, deadline_of(context))
        return pb.ReplaySetAsideWritesResponse(replayed_count=replayed)


def _answer(letter: DeadLetter) -> pb.DeadLetter:
    answer = pb.DeadLetter(
        index_name=letter.index,
        position=letter.position,
        memory_id=letter.memory_id,
        namespace=letter.namespace,
        attempts=letter.attempts,
        reason=letter.reason,
    )
    answer.time.FromMicroseconds(letter.time_us)
    return answer


def _aside(found: SetAsideWrite) -> pb.SetAsideWrite:
    answer = pb.SetAsideWrite(id=found.entry_id)
    if found.write is not None:
        answer.operation, answer.namespace = found.write.operation, found.write.namespace
        answer.principal_id = found.write.principal_id
        answer.time.FromMicroseconds(found.write.time_us)
    return answer
