"""A reloader with everything real but the clock and the compiling process."""

from collections.abc import Sequence
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controlplane.compile import Compiled, compile_documents
from controlplane.documents import Document
from controlplane.fleet import Fleet
from controlplane.reload import Reloader
from controlplane.snapshots import SnapshotBuilder, Snapshots
from controlplane.sqlite_revisions import SqliteRevisions
from controlplane.standing import Parts, Standing
from memplane.policy.access import hash_api_key

ADMIN_KEY = "mpk_admin-key"
NODE_KEY = "node-key"


class FixtureClock:
    def __init__(self, now_us: int = 1_760_000_000_000_000) -> None:
        self.value_us = now_us

    def now_us(self) -> int:
        return self.value_us


class InlineCompiler:
    def __init__(self) -> None:
        self.calls = 0

    async def compile(self, documents: Sequence[Document], *, with_cases: bool = True) -> Compiled:
        self.calls += 1
        return compile_documents(list(documents), bootstrap_admin=True)


def policy(top_k: int, name: str = "retrieve.yaml") -> list[Document]:
    return [Document(name, f"retrieve_policy:\n  top_k: {top_k}\n".encode())]


BROKEN = [Document("retrieve.yaml", b"retrieve_policy:\n  top_kk: 3\n")]


async def make_parts(
    data: Path, folder: Path | None = None, key: Ed25519PrivateKey | None = None, holder: str = "control-1"
) -> Parts:
    builder = SnapshotBuilder(key or Ed25519PrivateKey.generate(), hash_api_key(ADMIN_KEY))
    return Parts(
        store=await SqliteRevisions.open(data / "revisions.sqlite3"),
        compiler=InlineCompiler(),
        builder=builder,
        snapshots=Snapshots(builder.access_without_policy()),
        fleet=Fleet(),
        clock=FixtureClock(),
        holder=holder,
        policy_folder=folder,
    )


async def started(parts: Parts) -> Reloader:
    reloader = Reloader(parts, Standing(parts))
    await reloader.start()
    return reloader
