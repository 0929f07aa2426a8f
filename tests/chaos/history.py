"""What every client saw: one JSON line for each attempt of each call, written when it is answered.

Times are of one monotonic clock, in seconds. What was asked and what was told are reduced to what the checker judges by
(ids, versions, tokens, marker words); content is told apart by its marker, a word that stands in one statement only.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

MARKER = re.compile(r"mk-(\d+)-(\d\d)-\d{6}")
"""The word by which a statement is known: tenant, writer (99: everybody of the tenant), number."""

SHARED_WRITER = 99
FLUSH_EVERY = 200
"""Lines kept back; the writer runs in the harness, which nothing kills."""


def marker(tenant: int, writer: int, number: int) -> str:
    """The marker of a statement."""
    return f"mk-{tenant}-{writer:02d}-{number:06d}"


def tenant_of(word: str) -> int:
    """The tenant of a marker."""
    match = MARKER.fullmatch(word)
    assert match is not None, word
    return int(match[1])


def is_shared(word: str) -> bool:
    """Whether several clients write the statement of a marker, word for word."""
    match = MARKER.fullmatch(word)
    return match is not None and int(match[2]) == SHARED_WRITER


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One attempt of one call. `end_s` None: never answered; `code` is a name of grpc.StatusCode, "" for no answer.

    `intent` numbers what the client wanted, `item` the parts of a batch, `attempt` its tries from 0. `method` is write,
    update, forget, search, context, get, list, operation, or `lag` for a span in which the client itself was held up,
    or `fault` for something broken from `start_s` to `end_s`.
    """

    client: int
    tenant: int
    intent: int
    method: str
    start_s: float
    end_s: float | None
    item: int = 0
    attempt: int = 0
    deadline_s: float = 0.0
    code: str = ""
    asked: Mapping[str, Any] = field(default_factory=dict)
    told: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """How a report names it."""
        return f"client {self.client} intent {self.intent}.{self.item} attempt {self.attempt} {self.method}"


_NAMES = ("client", "tenant", "intent", "method", "start_s", "end_s", "item", "attempt", "deadline_s", "code", "asked")
_FIELDS = (*_NAMES, "told")


def to_line(entry: Entry) -> str:
    """The entry as a line."""
    return json.dumps([getattr(entry, name) for name in _FIELDS], ensure_ascii=False, separators=(",", ":"))


def from_line(line: str) -> Entry:
    """The entry of a line."""
    return Entry(**dict(zip(_FIELDS, json.loads(line), strict=True)))


class HistoryWriter:
    """Appends entries to a file. A context manager."""

    def __init__(self, path: Path):
        self._file = path.open("a", encoding="utf-8")
        self._lines: list[str] = []
        self.count = 0

    def add(self, entry: Entry) -> None:
        """Takes an entry; it is on disk some entries later, or when the writer is closed."""
        self._lines.append(to_line(entry))
        self.count += 1
        if len(self._lines) >= FLUSH_EVERY:
            self.flush()

    def flush(self) -> None:
        """Writes what was kept back."""
        self._file.write("".join(f"{line}\n" for line in self._lines))
        self._file.flush()
        self._lines.clear()

    def close(self) -> None:
        """Writes the rest and closes the file."""
        self.flush()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_history(path: Path) -> list[Entry]:
    """The entries of a file, by their start."""
    with path.open(encoding="utf-8") as lines:
        return sorted((from_line(line) for line in lines), key=lambda entry: entry.start_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalMemory:
    """A memory as it is listed at the end; `state` is a name of the enum without its prefix."""

    id: str
    tenant: int
    namespace: str
    subject: str
    kind: str
    state: str
    version: int
    marker: str
    fact_key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalOperation:
    """A queued write at the end. `code`: of its error, NOT_FOUND when nobody knows it, "" while it waits."""

    name: str
    done: bool
    code: str
    memory_id: str = ""
    action: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalState:
    """What is there once everything healed: memories, queued writes, and what reads answered then.

    `raw_leftovers`: texts of erased memories found in the stores themselves.
    """

    memories: tuple[FinalMemory, ...]
    operations: tuple[FinalOperation, ...] = ()
    reads: tuple[Entry, ...] = ()
    raw_leftovers: tuple[str, ...] = ()


def markers_in(text: str) -> list[str]:
    """The markers in a text, each once, in order."""
    return list(dict.fromkeys(match[0] for match in MARKER.finditer(text)))
