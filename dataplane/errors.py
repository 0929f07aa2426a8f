"""Errors that ports raise; facts only. `memplane.errors` has those that a client sees."""

from dataclasses import dataclass


@dataclass
class BackendUnavailable(Exception):
    """A backend did not answer, or not in time."""

    backend: str
    detail: str = ""


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
