"""Judges the answers that clients had while the run went on."""

from collections import defaultdict
from collections.abc import Iterator

from tests.chaos.history import Entry, is_shared, tenant_of
from tests.chaos.model import Happening, Key, Model, Revised, Write

SETTLED_S = 5.0
"""After this long a search needs no token to find a write or change; a cached answer may lag. Unmeasured."""

EXCUSING = frozenset({"vector_index", "text_index", "embedder", "record_store"})
"""Backends without which an answer may lack something, when `degraded` names them."""

READS = frozenset({"search", "context", "get", "list"})
SEARCHES = frozenset({"search", "context"})

Found = Iterator[tuple[str, str]]


def violations(model: Model) -> Found:
    """Whatever is wrong with an answer, as (kind, what)."""
    for entry in model.entries:
        if entry.method in {"lag", "fault"}:
            continue
        yield from _leaked(entry)
        if entry.method in READS and entry.code == "OK":
            yield from _resurrected(model, entry)
            yield from _doubled(model, entry)
        if entry.method in SEARCHES and entry.code == "OK" and not _is_excused(entry):
            yield from _missed(model, entry)
            yield from _outdated(model, entry)
        if entry.method == "get":
            yield from _mistold(model, entry)
    yield from _incomplete_lists(model)


def _is_excused(entry: Entry) -> bool:
    return bool(EXCUSING & set(entry.told.get("degraded", ())))


def _leaked(entry: Entry) -> Found:
    """Another tenant's words anywhere in the answer, or a good answer where none is allowed.

    An error may name what was asked for.
    """
    echoed = set() if entry.code == "OK" else {entry.asked.get("marker", "")}
    words = [word for word in entry.told.get("markers", ()) if tenant_of(word) != entry.tenant and word not in echoed]
    if words:
        yield "leaked", f"{entry.name}: tenant {entry.tenant} was shown {words}"
    elif entry.code == "OK" and entry.asked.get("foreign"):
        yield "leaked", f"{entry.name}: tenant {entry.tenant} was answered in {entry.asked['ns']}"


def _resurrected(model: Model, entry: Entry) -> Found:
    for memory_id in _ids(entry):
        if _forgotten_before(model, memory_id, entry.start_s):
            yield "resurrected", f"{entry.name}: {memory_id} was forgotten before"
    for word in entry.told.get("markers", ()):
        ids = model.ids_of.get(word, set()) if not is_shared(word) else set()
        shown = ids and not ids & set(_ids(entry))
        if shown and all(_forgotten_before(model, memory_id, entry.start_s) for memory_id in ids):
            yield "resurrected", f"{entry.name}: the text of {word} was forgotten before"


def _ids(entry: Entry) -> list[str]:
    """The memories an answer names."""
    return [hit[0] for hit in entry.told.get("hits", ())] + list(entry.told.get("ids", ()))


def _forgotten_before(model: Model, memory_id: str, time_s: float) -> bool:
    return any(removal.was_done_by(time_s) for removal in model.removals_of.get(memory_id, ()))


def _doubled(model: Model, entry: Entry) -> Found:
    """Two memories of one statement, although neither can have changed while the call ran."""
    by_word: dict[tuple[str, str], list[str]] = defaultdict(list)
    for memory_id, _, word, namespace in entry.told.get("hits", ()):
        by_word[word, namespace].append(memory_id)
    for (word, _), ids in by_word.items():
        if len(set(ids)) < len(ids):
            yield "doubled", f"{entry.name}: {word} is there twice as one memory"
        elif len(ids) > 1 and not any(_was_changing(model, memory_id, entry) for memory_id in ids):
            yield "doubled", f"{entry.name}: {word} is there as {sorted(ids)}"


def _was_changing(model: Model, memory_id: str, entry: Entry) -> bool:
    end_s = entry.end_s or entry.start_s
    touching = (*model.removals_of.get(memory_id, ()), *model.changes_of.get(memory_id, ()))
    return any(item.end_s >= entry.start_s and item.start_s <= end_s for item in touching)


def _is_due(source: Happening, entry: Entry) -> bool:
    """Whether the answer must include a write or change."""
    if not source.was_done_by(entry.start_s):
        return False
    has_token = bool(source.token) and entry.asked.get("token") == source.token
    return has_token or entry.start_s - source.end_s > SETTLED_S


def _missed(model: Model, entry: Entry) -> Found:
    """The statement searched for in its own words is not there."""
    word, end_s = entry.asked.get("marker", ""), entry.end_s or entry.start_s
    if word in entry.told.get("markers", ()) or entry.asked.get("foreign") or entry.told.get("omitted"):
        return
    for source in model.sources.get(word, ()):
        if not _is_due(source, entry) or source.namespace != entry.asked["ns"] or not _is_active(source):
            continue
        if source.memory_id and not model.may_be_gone(source, end_s):
            kind = "lost" if entry.asked.get("token") else "unmarked"
            yield kind, f"{entry.name}: {word} ({source.memory_id}) is not in the answer"


def _is_active(source: Write | Revised) -> bool:
    return isinstance(source, Revised) or source.state in {"ACTIVE", ""}


def _outdated(model: Model, entry: Entry) -> Found:
    """An older version than an acknowledged change made, or a statement that an acknowledged one replaced."""
    token = entry.asked.get("token")
    for memory_id, version, _, _ in entry.told.get("hits", ()):
        for change in model.changes_of.get(memory_id, ()):
            if _is_due(change, entry) and version < change.version:
                yield "unmarked", f"{entry.name}: {memory_id} at version {version}, it was at {change.version} before"
        for write in model.replacements_of.get(memory_id, ()):
            if _is_due(write, entry):
                yield "unmarked", f"{entry.name}: {memory_id} was replaced by {write.memory_id} (token {token!r})"


def _mistold(model: Model, entry: Entry) -> Found:
    """A memory that is there is not found by its id, or is shown as it was before a change."""
    memory_id = entry.asked["id"]
    if entry.asked.get("foreign") or entry.code not in {"OK", "NOT_FOUND"}:
        return
    changes = model.changes_of.get(memory_id, ())
    if entry.code == "OK":
        version = entry.told.get("version", 0)
        if any(change.was_done_by(entry.start_s) and version < change.version for change in changes):
            yield "unmarked", f"{entry.name}: {memory_id} at version {version}, it was newer before"
        return
    for source in (*model.writes_of(memory_id), *changes):
        if source.memory_id == memory_id and source.was_done_by(entry.start_s) and _stays(model, source, entry):
            yield "unmarked", f"{entry.name}: {memory_id} is not found"
            return


def _stays(model: Model, source: Happening, entry: Entry) -> bool:
    expires = any(write.expires for write in model.writes_of(source.memory_id))
    return not expires and not model.removal_after(source, entry.end_s or entry.start_s)


def _incomplete_lists(model: Model) -> Found:
    """A list read to its end lacks a memory that was there all the time."""
    lists: dict[Key, list[Entry]] = defaultdict(list)
    for entry in model.entries:
        if entry.method == "list" and entry.code == "OK" and not entry.asked.get("foreign"):
            lists[entry.client, entry.intent, 0].append(entry)
    for pages in lists.values():
        pages.sort(key=lambda page: page.item)
        if [page.item for page in pages] == list(range(len(pages))) and pages[-1].told.get("last"):
            yield from _lacking(model, pages)


def _lacking(model: Model, pages: list[Entry]) -> Found:
    first, end_s = pages[0], pages[-1].end_s or pages[-1].start_s
    listed = {memory_id for page in pages for memory_id in _ids(page)}
    for write in model.writes_about.get((first.asked["ns"], first.asked["subject"]), ()):
        is_there = write.was_done_by(first.start_s) and write.memory_id and _is_active(write)
        if not is_there or write.memory_id in listed:
            continue
        gone = not _stays(model, write, pages[-1]) or model.superseded_after(write, end_s)
        if not gone:
            yield "unmarked", f"{first.name}: {write.memory_id} ({write.marker}) is not in the whole list"
