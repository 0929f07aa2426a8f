"""Takes search, list and read requests apart."""

from dataplane.logic.normalise import normalise_content
from dataplane.model import EVERYTHING, State
from dataplane.pipelines.list import Listing
from dataplane.pipelines.search import SearchQuery
from dataplane.server.checks import Notes
from dataplane.server.filters import read_filter, read_selection
from dataplane.server.tokens import read_consistency_token, read_page_token
from memplane.v1 import memory_service_pb2

MAX_TOP_K = 1_000
MAX_PAGE_SIZE = 1_000
MAX_QUERY_BYTES = 16 * 1024
MAX_NAMESPACES = 100
MAX_CONTEXT_TURNS = 20
DEFAULT_PAGE_SIZE = 50
_STATES = tuple(state.name for state in State)


def read_search(request: memory_service_pb2.SearchMemoriesRequest, prefix: str = "") -> SearchQuery:
    """The query of a search request; `prefix` is where it stands in a larger request."""
    notes = Notes(prefix)
    more = read_filter(notes, request.filter) if request.HasField("filter") else None
    query = SearchQuery(
        namespaces=_namespaces(notes, request),
        include_shared=request.include_shared,
        query=_text(notes, "query", request.query, required=True),
        filter=read_selection(notes, request.subject_id, request.layers, request.kinds, more),
        top_k=notes.integer("top_k", request.top_k, 0, MAX_TOP_K),
        min_confidence=(
            notes.unit("min_confidence", request.min_confidence) if request.HasField("min_confidence") else None
        ),
        context_turns=_turns(notes, request),
        task_type=notes.label("task_type", request.task_type),
        reference_time_us=(
            notes.time_us("reference_time", request.reference_time) if request.HasField("reference_time") else None
        ),
        as_of_us=notes.time_us("as_of", request.as_of) if request.HasField("as_of") else None,
        record_access=request.record_access if request.HasField("record_access") else True,
        at_least_as_fresh=read_consistency_token(notes, request.at_least_as_fresh),
        include_cold=request.include_cold,
        explain=request.explain,
    )
    notes.close()
    return query


def _namespaces(notes: Notes, request: memory_service_pb2.SearchMemoriesRequest) -> tuple[str, ...]:
    first = (notes.namespace("namespace", request.namespace),) if request.namespace else ()
    if not first and not request.namespaces:
        notes.add("namespace", "is required unless namespaces is given")
    return tuple(dict.fromkeys((*first, *notes.namespaces("namespaces", request.namespaces, MAX_NAMESPACES))))


def _text(notes: Notes, field: str, text: str, *, required: bool) -> str:
    size = len(text.encode())
    if size > MAX_QUERY_BYTES:
        notes.add(field, f"has {size} bytes; at most {MAX_QUERY_BYTES} are allowed")
        return ""
    clean = normalise_content(text)
    if required and not clean:
        notes.add(field, "has no visible text; give the question")
    return clean


def _turns(notes: Notes, request: memory_service_pb2.SearchMemoriesRequest) -> tuple[str, ...]:
    turns = request.context_turns
    if len(turns) > MAX_CONTEXT_TURNS:
        notes.add("context_turns", f"has {len(turns)} turns; at most {MAX_CONTEXT_TURNS} are allowed")
        return ()
    return tuple(_text(notes, f"context_turns[{index}]", turn, required=False) for index, turn in enumerate(turns))


def read_listing(request: memory_service_pb2.ListMemoriesRequest, principal_id: str) -> Listing:
    """The listing that a principal asks for."""
    notes = Notes()
    more = read_filter(notes, request.filter) if request.HasField("filter") else None
    states = []
    for index, number in enumerate(request.states):
        if notes.enum(f"states[{index}]", number, _STATES) == 0:
            notes.add(f"states[{index}]", f"is {number}; one of {', '.join(_STATES)}")
        else:
            states.append(State(number))
    listing = Listing(
        namespace=notes.namespace("namespace", request.namespace),
        filter=read_selection(notes, request.subject_id, request.layers, request.kinds, more) or EVERYTHING,
        states=frozenset(states) or frozenset({State.ACTIVE, State.COLD}),
        page_size=read_page_size(notes, request.page_size),
        after=read_page_token(request, principal_id),
    )
    notes.close()
    return listing


def read_page_size(notes: Notes, page_size: int) -> int:
    """A page size; 50 when none is given."""
    return notes.integer("page_size", page_size, 0, MAX_PAGE_SIZE) or DEFAULT_PAGE_SIZE
