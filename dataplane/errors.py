"""Errors that ports raise; facts only. `memplane.errors` has those that a client sees."""

from collections.abc import Mapping
from dataclasses import dataclass

_SQLITE_MEANS = {
    "SQLITE_FULL": "the disk is full",
    "SQLITE_CORRUPT": "the file is damaged",
    "SQLITE_NOTADB": "the file is no database",
    "SQLITE_IOERR": "the disk failed",
    "SQLITE_READONLY": "the file may not be written",
    "SQLITE_CANTOPEN": "the file cannot be opened",
}


@dataclass
class BackendUnavailable(Exception):
    """A backend did not answer, or not in time. As text it says what the symbolic names of SQLite mean."""

    backend: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.backend}: {self.words}"

    @property
    def words(self) -> str:
        """The detail for people."""
        meaning = next((means for code, means in _SQLITE_MEANS.items() if self.detail.startswith(code)), "")
        return f"{meaning} ({self.detail})" if meaning else self.detail or "does not answer"


@dataclass
class NotYet(BackendUnavailable):
    """A backend is well and asks to be asked again some seconds later."""


@dataclass
class DuplicateContent(Exception):
    """An ACTIVE memory with this (namespace, subject, kind, statement key) is already there."""

    memory_id: str


@dataclass
class DuplicateFact(Exception):
    """An ACTIVE memory with this (namespace, subject, fact_key) is already there."""

    memory_id: str


@dataclass
class StaleVersion(Exception):
    """The memory is not at the version that the change expects; `current` 0: it is not there."""

    memory_id: str
    expected: int
    current: int


@dataclass
class DuplicateRequest(Exception):
    """This principal already used this request_id."""

    request_id: str


@dataclass
class Misconfigured(Exception):
    """A backend answers but cannot be used as configured; the text says what is wrong and what to do."""

    backend: str
    problem: str

    def __str__(self) -> str:
        return f"{self.backend}: {self.problem}"


@dataclass
class EntriesRefused(Exception):
    """An index took a batch but for these entries: memory id to reason. Trying them again unchanged is of no use."""

    index: str
    reasons: Mapping[str, str]


@dataclass
class QueueFull(Exception):
    """The queue takes no more for now; try again after so many seconds."""

    retry_after_s: float
