"""What a revision store keeps, and what it promises: every accepted policy set, API keys, answers, folder contents.

The newest revision is the one in force. Several control planes may share one store: a revision is taken only when it
follows the newest one (compare and set), so that generations count up by one, never double and never go back.
"""

from dataclasses import dataclass
from typing import Protocol

from controlplane.documents import Document

REQUEST_KEPT_US = 24 * 3600 * 1_000_000
"""How long an answer to a request_id is remembered: 24 hours."""
FOLDER_CONTENTS_KEPT = 1000
"""How many contents of policy folders are remembered as brought in. Unmeasured."""


class UnusableStore(Exception):
    """The store is there and cannot be used; says what to do."""


class UnknownSchema(UnusableStore):
    """The store was written by another version of MemPlane."""


@dataclass
class Outrun(Exception):
    """Another control plane has put generation `newest` in force meanwhile; nothing was written."""

    newest: int


@dataclass
class KeyIdTaken(Exception):
    """There is an API key of this id already; nothing was written."""

    key_id: str


@dataclass(frozen=True, slots=True)
class Revision:
    """An accepted policy set. `documents` are empty in lists.

    `origin` is `rpc`, `folder`, `rollback` or `api_key` (only the API keys changed). `version` is the digest of the
    documents and of the API keys beside them.
    """

    generation: int
    version: str
    create_time_us: int
    author: str
    comment: str
    origin: str
    documents: tuple[Document, ...] = ()

    @property
    def etag(self) -> str:
        """Changes with every acceptance."""
        return f"{self.generation}-{self.version.removeprefix('sha256:')[:16]}"


@dataclass(frozen=True, slots=True)
class ApiKeyRecord:
    """An API key without its secret. `expire_time_us` None: it does not end; `revoke_time_us` None: it was not revoked.

    `key_id` is public: the 8 hex digits after `mpk_`. `sha256` is that of the whole key, 64 hex digits.
    """

    key_id: str
    sha256: str
    principal: str
    create_time_us: int
    expire_time_us: int | None
    description: str
    author: str
    revoke_time_us: int | None = None

    def holds(self, now_us: int) -> bool:
        """Neither revoked nor expired."""
        return self.revoke_time_us is None and (self.expire_time_us is None or now_us < self.expire_time_us)


@dataclass(frozen=True, slots=True)
class KeyEnd:
    """An API key is revoked."""

    key_id: str
    revoke_time_us: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request was answered, for its retries."""

    author: str
    request_id: str
    payload_sha256: str
    create_time_us: int
    answer: bytes


@dataclass(frozen=True, slots=True)
class FolderContent:
    """What a policy folder last held: its digest (empty: it was never looked at), and why it was refused, if so."""

    version: str = ""
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class FolderNote:
    """What the folder of the control plane `holder` holds now. `is_taken`: it was put in force, or was in force."""

    holder: str
    content: FolderContent
    is_taken: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What is written at once, all or nothing. None: that part stays as it is. A key changes with a revision alone."""

    revision: Revision | None = None
    answer: Answer | None = None
    folder: FolderNote | None = None
    new_key: ApiKeyRecord | None = None
    ended_key: KeyEnd | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """The revision in force with its documents (None before the first), and the API keys not revoked at that moment."""

    revision: Revision | None
    api_keys: tuple[ApiKeyRecord, ...] = ()


class RevisionStore(Protocol):
    """Keeps revisions. Every method raises Unavailable when the store fails, and the log has the cause, once.

    What a call has written is on disk when it returns.
    """

    async def close(self) -> None:
        """Waits for running calls and lets go of the store."""
        ...

    async def newest(self) -> int:
        """The newest generation; 0 before the first. Cheap: it is asked about every half second."""
        ...

    async def head(self) -> Head:
        """What is in force, as of one moment."""
        ...

    async def get(self, generation: int) -> Revision | None:
        """One revision with its documents; None when there is no such."""
        ...

    async def page(self, before: int, page_size: int) -> list[Revision]:
        """Revisions of a generation below `before`, newest first, without documents."""
        ...

    async def write(self, change: Change) -> None:
        """Writes all of it in one transaction; a revision must be of the generation after the newest one.

        Unavailable may leave it open whether it was written, when the connection broke at the commit.

        Raises:
            Outrun, KeyIdTaken: Nothing of it is there.
        """
        ...

    async def answer(self, author: str, request_id: str, now_us: int) -> Answer | None:
        """What this author's request was answered in the last 24 hours."""
        ...

    async def folder(self, holder: str) -> FolderContent:
        """What the folder of this control plane last held."""
        ...

    async def brought_by_another(self, holder: str, version: str) -> bool:
        """Whether this content was taken from a folder, later than the last taken one that `holder`'s folder held."""
        ...

    async def api_keys(self) -> list[ApiKeyRecord]:
        """Every API key, also revoked and expired ones, newest first (by time, then by id, downwards)."""
        ...
