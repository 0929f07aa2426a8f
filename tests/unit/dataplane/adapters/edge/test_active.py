"""Indexes of several embedding models lie side by side in one folder, and one of them is active."""

import asyncio
from pathlib import Path

import pytest

from dataplane.adapters.edge.active import folder_name
from dataplane.adapters.edge.vector import EdgeVectorIndex
from dataplane.errors import BackendUnavailable
from tests.contract.index_suite import DIMENSION, entry, upsert, versions


def soon() -> float:
    return asyncio.get_running_loop().time() + 30


async def test_models_share_a_folder_and_see_the_same_active_one(tmp_path: Path) -> None:
    old, new = (EdgeVectorIndex.open(tmp_path, DIMENSION, model) for model in ("org/small", "org/large"))
    await upsert(old, [entry("mem_1")])
    await old.activate(soon())
    assert await versions(new) == {}
    assert [await index.active_model(soon()) for index in (old, new)] == ["org/small"] * 2
    await new.activate(soon())
    assert [await index.active_model(soon()) for index in (old, new)] == ["org/large"] * 2
    await old.close()
    await new.close()
    reopened = EdgeVectorIndex.open(tmp_path, DIMENSION, "org/small")
    assert not reopened.recreated
    assert await versions(reopened) == {"mem_1": 1}
    assert await reopened.active_model(soon()) == "org/large"
    await reopened.close()


async def test_a_model_of_another_dimension_starts_empty(tmp_path: Path) -> None:
    index = EdgeVectorIndex.open(tmp_path, DIMENSION, "m")
    await upsert(index, [entry("mem_1")])
    await index.close()
    index = EdgeVectorIndex.open(tmp_path, DIMENSION * 2, "m")
    assert index.recreated
    assert await versions(index) == {}
    await index.close()


async def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    index = EdgeVectorIndex.open(tmp_path, DIMENSION, "m")
    (tmp_path / "active.json").write_text("{")
    with pytest.raises(BackendUnavailable, match=r"vector_index: active\.json"):
        await index.active_model(soon())
    await index.activate(soon())
    assert await index.active_model(soon()) == "m"
    await index.close()


def test_models_with_like_names_have_folders_apart() -> None:
    names = ["org/model", "org-model", "org model", "../org", "模型", "", "x" * 300]
    folders = [folder_name(name) for name in names]
    assert len(set(folders)) == len(names)
    assert all("/" not in folder and not folder.startswith(".") and len(folder) < 80 for folder in folders)
