"""Puts policy sets in force: compile, guard, store, sign, swap, push; all or nothing, one at a time.

Rules:
1. The set in force is the one last accepted, by RPC or from the folder, also after a restart.
2. The folder acts only when its content differs from what it last held.
3. A refused set changes nothing. A set equal to the one in force is accepted without a new generation.
4. What is in force was stored first: a crash in between forgets neither.
5. Control planes that share a store take turns by its generations: whoever comes second catches up, then starts again
   on top of the first, or is told StaleEtag when it gave an etag.
6. A folder's content that another control plane's folder has brought since is noted, and acts no more.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from controlplane.compile import Compiled, shrinks
from controlplane.convert import diagnostic_messages, revision_message
from controlplane.diagnose import Diagnostic, Severity
from controlplane.documents import Document, version_of_set
from controlplane.files import FolderUnreadable, read_folder
from controlplane.revisions import Answer, Change, FolderContent, FolderNote, Revision
from controlplane.snapshots import InForce, content_version
from controlplane.standing import Parts, Standing
from memplane.errors import InvalidField, PolicyShrinks, RequestIdReused, StaleEtag
from memplane.v1 import policy_admin_service_pb2 as admin_pb2

log = logging.getLogger("memplane.controlplane.reload")

FOLDER_AUTHOR = "folder"


@dataclass(frozen=True, slots=True)
class Command:
    """A reload as asked for. `documents` None: those of the folder. `payload_sha256` tells retries from misuse.

    `from_folder`: the documents given are what the folder holds.
    """

    documents: Sequence[Document] | None
    author: str
    origin: str = "rpc"
    comment: str = ""
    etag: str = ""
    validate_only: bool = False
    allow_shrink: bool = False
    request_id: str = ""
    payload_sha256: str = ""
    from_folder: bool = False


class _FolderMovedOn(Exception):
    """The folder holds something else by now, and the watch will see it; or another control plane has brought it."""


class Reloader:
    """Takes policy sets. `start` comes first."""

    def __init__(self, parts: Parts, standing: Standing):
        self._parts = parts
        self._standing = standing
        self.folder = FolderContent()
        """What the folder last held."""

    async def start(self) -> None:
        """Puts the last accepted revision in force again. One that this build refuses stays stored, and is logged."""
        self.folder = await self._parts.store.folder(self._parts.holder)
        await self._standing.catch_up()

    async def compile(self, documents: Sequence[Document] | None, *, with_cases: bool = True) -> Compiled:
        """Checks documents (None: the folder's) and changes nothing; see `controlplane.compiler.Compiler`."""
        try:
            found = await self._documents(documents)
        except FolderUnreadable as error:
            return _unreadable(error)
        return await self._parts.compiler.compile(found, with_cases=with_cases)

    async def reload(
        self, command: Command, authorise: Callable[[], object] | None = None
    ) -> admin_pb2.ReloadPolicySetResponse:
        """Carries a command out; `propagation` is left to the caller.

        A caller that goes away does not stop it half way. `authorise` is called when the command's turn comes, for the
        reload before it may have taken the caller's permission away; what it raises ends the command.

        Raises:
            StaleEtag, RequestIdReused, PolicyShrinks: Nothing was changed.
        """
        return await self._standing.in_turn(lambda: self._attempt(command, authorise))

    async def take_folder(self, documents: Sequence[Document]) -> None:
        """Reloads what the folder holds now. `folder` tells what became of it."""
        command = Command(documents, author=FOLDER_AUTHOR, origin="folder", from_folder=True)
        try:
            response = await self.reload(command)
            refusal = "" if response.accepted else _told(response)
        except (InvalidField, PolicyShrinks) as error:
            refusal = error.message
        except _FolderMovedOn:
            return
        if refusal:
            log.warning("the policy folder's content is refused: %s", refusal)
            await self._remember(FolderContent(version_of_set(documents), refusal))

    async def _attempt(
        self, command: Command, authorise: Callable[[], object] | None
    ) -> admin_pb2.ReloadPolicySetResponse:
        if authorise is not None:
            authorise()
        earlier = await self._earlier_answer(command)
        if earlier is not None:
            return earlier
        if command.etag and command.etag != self._standing.etag:
            raise StaleEtag(command.etag, self._standing.etag)
        await self._check_folder(command)
        try:
            documents = await self._documents(command.documents)
        except FolderUnreadable as error:
            return self._refused(_unreadable(error))
        from_folder = command.from_folder or command.documents is None
        return await self._take(replace(command, documents=documents, from_folder=from_folder))

    async def _take(self, command: Command) -> admin_pb2.ReloadPolicySetResponse:
        assert command.documents is not None
        current = self._parts.snapshots.current
        is_newest = current is not None and not self._standing.problem
        if current is not None and is_newest and current.compiled.version == version_of_set(command.documents):
            return await self._accept_same(command, current)
        compiled = await self._parts.compiler.compile(command.documents)
        if compiled.policy is None:
            return self._refused(compiled)
        self._guard(command, compiled)
        if command.validate_only:
            return self._refused(compiled)
        return await self._accept_new(command, compiled)

    async def _accept_same(self, command: Command, current: InForce) -> admin_pb2.ReloadPolicySetResponse:
        response = _response(current.revision, current.compiled, accepted=not command.validate_only)
        if not command.validate_only:
            change = self._change(command, None, response, current.compiled.version)
            await self._parts.store.write(change)
            self._remember_taken(change)
        return response

    async def _accept_new(self, command: Command, compiled: Compiled) -> admin_pb2.ReloadPolicySetResponse:
        api_keys, now_us = self._standing.api_keys, self._parts.clock.now_us()
        revision = Revision(
            generation=self._standing.newest + 1,
            version=content_version(compiled.version, api_keys, now_us),
            create_time_us=now_us,
            author=command.author,
            comment=command.comment,
            origin=command.origin,
            documents=tuple(command.documents or ()),
        )
        in_force = await asyncio.to_thread(self._parts.builder.build, revision, compiled, api_keys)
        response = _response(revision, compiled, accepted=True)
        change = self._change(command, revision, response, compiled.version)
        await self._standing.take(change, in_force)
        self._remember_taken(change)
        return response

    def _change(
        self,
        command: Command,
        revision: Revision | None,
        response: admin_pb2.ReloadPolicySetResponse,
        version: str,
    ) -> Change:
        answer = None
        if command.request_id:
            now_us = self._parts.clock.now_us()
            body = response.SerializeToString()
            answer = Answer(command.author, command.request_id, command.payload_sha256, now_us, body)
        note = FolderNote(self._parts.holder, FolderContent(version), is_taken=True) if command.from_folder else None
        return Change(revision, answer, note)

    def _remember_taken(self, change: Change) -> None:
        if change.folder is not None:
            self.folder = change.folder.content

    async def _remember(self, folder: FolderContent) -> None:
        await self._parts.store.write(Change(folder=FolderNote(self._parts.holder, folder)))
        self.folder = folder

    async def _earlier_answer(self, command: Command) -> admin_pb2.ReloadPolicySetResponse | None:
        if not command.request_id or command.validate_only:
            return None
        found = await self._parts.store.answer(command.author, command.request_id, self._parts.clock.now_us())
        if found is None:
            return None
        if found.payload_sha256 != command.payload_sha256:
            raise RequestIdReused(command.request_id)
        return admin_pb2.ReloadPolicySetResponse.FromString(found.answer)

    async def _documents(self, documents: Sequence[Document] | None) -> Sequence[Document]:
        if documents is not None:
            return documents
        if self._parts.policy_folder is None:
            raise InvalidField.one("inline", "required: this control plane has no policy folder")
        return await asyncio.to_thread(read_folder, self._parts.policy_folder)

    async def _check_folder(self, command: Command) -> None:
        """What the folder held before this reload's turn must not replace what another has taken from it since."""
        if command.origin != FOLDER_AUTHOR:
            return
        if self._parts.policy_folder is not None:
            try:
                holds = await asyncio.to_thread(read_folder, self._parts.policy_folder)
            except FolderUnreadable as error:
                raise _FolderMovedOn from error
            if list(command.documents or ()) != holds:
                raise _FolderMovedOn
        version = version_of_set(command.documents or ())
        if await self._parts.store.brought_by_another(self._parts.holder, version):
            await self._remember(FolderContent(version))
            raise _FolderMovedOn

    def _guard(self, command: Command, compiled: Compiled) -> None:
        current = self._parts.snapshots.current
        if command.allow_shrink or current is None:
            return
        assert current.compiled.policy is not None
        assert compiled.policy is not None
        losses = shrinks(current.compiled.policy, compiled.policy)
        if losses:
            raise PolicyShrinks(losses)

    def _refused(self, compiled: Compiled) -> admin_pb2.ReloadPolicySetResponse:
        current = self._parts.snapshots.current
        return _response(current.revision if current is not None else None, compiled, accepted=False)


def _response(revision: Revision | None, compiled: Compiled, *, accepted: bool) -> admin_pb2.ReloadPolicySetResponse:
    return admin_pb2.ReloadPolicySetResponse(
        revision=revision_message(revision) if revision is not None else None,
        diagnostics=diagnostic_messages(compiled.diagnostics),
        accepted=accepted,
        total_diagnostics=len(compiled.diagnostics),
    )


def _unreadable(error: FolderUnreadable) -> Compiled:
    diagnostic = Diagnostic(Severity.ERROR, "FOLDER_UNREADABLE", str(error), file=error.file)
    return Compiled(policy=None, diagnostics=(diagnostic,), version="", positions={})


def _told(response: admin_pb2.ReloadPolicySetResponse) -> str:
    if not response.diagnostics:
        return "refused"
    first = response.diagnostics[0]
    return f"{first.file}:{first.line}:{first.column}: {first.code} {first.message}"
