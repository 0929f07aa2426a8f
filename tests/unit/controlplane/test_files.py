import os
from pathlib import Path
from typing import IO, Any

import pytest

from controlplane.documents import MAX_DOCUMENT_BYTES, MAX_DOCUMENTS, MAX_SET_BYTES, Document, name_problem
from controlplane.files import FolderUnreadable, read_folder


def test_reads_yaml_files_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "C.yaml"):
        (tmp_path / name).write_text(name)
    assert read_folder(tmp_path) == [
        Document("C.yaml", b"C.yaml"),
        Document("a.yml", b"a.yml"),
        Document("b.yaml", b"b.yaml"),
    ]


def test_leaves_out_dot_files_other_files_and_subfolders(tmp_path: Path) -> None:
    for name in (".hidden.yaml", "README.md", "a.yaml~", "a.yaml.swp", "a.json"):
        (tmp_path / name).write_text("x")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "folder.yaml" / "inner.yaml").write_text("x")
    assert read_folder(tmp_path) == []


def test_an_empty_folder_has_no_documents(tmp_path: Path) -> None:
    assert read_folder(tmp_path) == []


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FolderUnreadable, match=r"gone: No such file") as raised:
        read_folder(tmp_path / "gone")
    assert raised.value.file == ""


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("x")
    with pytest.raises(FolderUnreadable, match="Not a directory"):
        read_folder(tmp_path / "a.yaml")


def test_a_link_to_nowhere_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to(tmp_path / "gone")
    with pytest.raises(FolderUnreadable) as raised:
        read_folder(tmp_path)
    assert raised.value.file == "a.yaml"


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.yaml")
    with pytest.raises(FolderUnreadable, match="not a regular file"):
        read_folder(tmp_path)


def test_a_file_above_the_limit_is_read_one_byte_over(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"#" * (MAX_DOCUMENT_BYTES * 2))
    [document] = read_folder(tmp_path)
    assert len(document.content) == MAX_DOCUMENT_BYTES + 1


def test_more_files_than_the_limit_are_refused(tmp_path: Path) -> None:
    for place in range(MAX_DOCUMENTS + 1):
        (tmp_path / f"{place}.yaml").touch()
    with pytest.raises(FolderUnreadable, match="at most 1000"):
        read_folder(tmp_path)


def test_more_bytes_than_the_limit_are_refused(tmp_path: Path) -> None:
    for place in range(MAX_SET_BYTES // MAX_DOCUMENT_BYTES + 1):
        (tmp_path / f"{place}.yaml").write_bytes(b"#" * MAX_DOCUMENT_BYTES)
    with pytest.raises(FolderUnreadable, match="more than 8388608 bytes"):
        read_folder(tmp_path)


def lay(mount: Path, version: str) -> None:
    """Lays the files of a version into a folder of their own, as Kubernetes does, and links their names."""
    folder = mount / f"..{version}"
    folder.mkdir()
    for name in ("a.yaml", "b.yaml"):
        (folder / name).write_text(version)
        if not (mount / name).is_symlink():
            (mount / name).symlink_to(Path("..data") / name)


def swap(mount: Path, version: str) -> None:
    """Makes a version the current one at one stroke."""
    (mount / "..data_tmp").symlink_to(f"..{version}")
    (mount / "..data_tmp").replace(mount / "..data")


def test_a_swapped_config_map_is_read_as_it_now_stands(tmp_path: Path) -> None:
    for version in ("v1", "v2"):
        lay(tmp_path, version)
        swap(tmp_path, version)
        assert [document.content for document in read_folder(tmp_path)] == [version.encode()] * 2


def test_a_swap_while_reading_mixes_no_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tmp_path, "v1")
    lay(tmp_path, "v2")
    swap(tmp_path, "v1")
    opened = Path.open

    def open_and_swap(path: Path, mode: str) -> IO[Any]:
        file = opened(path, mode)
        swap(tmp_path, "v2")
        return file

    monkeypatch.setattr(Path, "open", open_and_swap)
    assert [document.content for document in read_folder(tmp_path)] == [b"v1", b"v1"]


@pytest.mark.parametrize("name", ["write.yaml", "a.yml", "部门.yaml", "a b.yaml", "a.b.yaml"])
def test_a_plain_file_name_is_accepted(name: str) -> None:
    assert name_problem(name) is None


@pytest.mark.parametrize(
    "name",
    ["", "a", ".yaml", ".a.yaml", "../a.yaml", "a/b.yaml", "a..b.yaml", "a\\b.yaml", "a\0.yaml", "a.yaml\n", "x" * 300],
)
def test_any_other_name_is_refused(name: str) -> None:
    assert name_problem(name) is not None
