"""A data plane as a process whose embeddings come from an endpoint."""

import shutil
from pathlib import Path

import pytest

from memplane.builtin import policies_folder
from memplane.v1 import memory_service_pb2 as pb
from tests.contract.embedding_server import serving, status
from tests.deadline import eventually_async
from tests.e2e.control_process import ADMIN, control_plane
from tests.e2e.data_process import DataProcess, stub_of

CONFIG = """
[embedder]
adapter = "endpoint"
url = "{url}"
model = "{model}"
dimension = {dimension}
retries = 0
timeout_s = 2.0
"""
DIMENSION = 384


def configured(folder: Path, url: str, model: str = "hash", dimension: int = DIMENSION) -> Path:
    path = folder / "memplane.toml"
    path.write_text(CONFIG.format(url=url, model=model, dimension=dimension))
    return path


async def write(plane: DataProcess, content: str) -> pb.WriteMemoryResponse:
    async with plane.channel() as channel:
        request = pb.WriteMemoryRequest(namespace="dept.sales", content=content, session_id="s")
        return await stub_of(channel).WriteMemory(request, metadata=ADMIN, timeout=30)


async def search(plane: DataProcess, query: str) -> pb.SearchMemoriesResponse:
    async with plane.channel() as channel:
        request = pb.SearchMemoriesRequest(namespace="dept.sales", query=query)
        return await stub_of(channel).SearchMemories(request, metadata=ADMIN, timeout=30)


@pytest.mark.slow
async def test_writes_go_on_without_the_endpoint_and_are_embedded_when_it_is_back(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    shutil.copytree(policies_folder("examples/evaluation"), tmp_path / "policies", dirs_exist_ok=True)
    async with serving() as endpoint, control_plane(tmp_path) as control:
        config = configured(tmp_path, endpoint.url)
        key = control.data_dir / "signing_key.pub"
        plane = DataProcess(tmp_path / "data", control.address, key, ("--config", str(config)), embedder="endpoint")
        await plane.start()
        await plane.wait_ready()
        assert not (await write(plane, "Acme renews in March")).degraded
        endpoint.script.extend(status(503) for _ in range(200))
        written = await write(plane, "Halden renews in April")
        assert [note.backend for note in written.degraded] == ["embedder"]
        found = await search(plane, "When does Halden renew?")
        assert "embedder" in [note.backend for note in found.degraded]
        assert found.hits[0].memory.content == "Halden renews in April"
        endpoint.script.clear()

        async def embedded() -> bool:
            answer = await search(plane, "Halden renews in April")
            return not answer.degraded and answer.hits[0].signals.vector > 0.9

        await eventually_async(embedded, bool, 30)
        await plane.stop()


@pytest.mark.parametrize(
    ("model", "dimension", "told"),
    [("hash", 385, "384"), ("no-such-model", DIMENSION, "model_not_found")],
)
async def test_a_wrong_setting_ends_the_start_and_says_which(
    tmp_path: Path, model: str, dimension: int, told: str
) -> None:
    (tmp_path / "policies").mkdir()
    async with serving() as endpoint, control_plane(tmp_path) as control:
        config = configured(tmp_path, endpoint.url, model, dimension)
        key = control.data_dir / "signing_key.pub"
        plane = DataProcess(tmp_path / "data", control.address, key, ("--config", str(config)), embedder="endpoint")
        with pytest.raises(AssertionError, match=f"memplane data: embedder: .*{told}"):
            await plane.start()
