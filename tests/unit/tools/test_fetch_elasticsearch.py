import functools
import hashlib
import os
import threading
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tools import fetch_elasticsearch


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive laid out as Elasticsearch's, with one program and one text."""
    home = f"elasticsearch-{fetch_elasticsearch.VERSION}"
    program = zipfile.ZipInfo(f"{home}/bin/elasticsearch")
    program.external_attr = 0o100755 << 16
    with zipfile.ZipFile(tmp_path / fetch_elasticsearch.ARCHIVE, "w") as made:
        made.writestr(program, "#!/bin/sh\n")
        made.writestr(f"{home}/NOTICE.txt", "notice")
    return tmp_path / fetch_elasticsearch.ARCHIVE


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves a folder and logs nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def central(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Folder of a repository of our own in the place of Maven Central; there is no Maven."""
    repository = tmp_path / "repository"
    handler = functools.partial(QuietHandler, directory=str(repository))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setattr(fetch_elasticsearch, "CENTRAL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield repository
        server.shutdown()
        thread.join()


def test_without_maven_it_comes_over_https_and_stays_in_the_cache(
    central: Path, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_elasticsearch, "SHA256", hashlib.sha256(archive.read_bytes()).hexdigest())
    laid = central / "org/elasticsearch/distribution/integ-test-zip/elasticsearch" / fetch_elasticsearch.VERSION
    laid.mkdir(parents=True)
    archive.rename(laid / archive.name)
    fetched = fetch_elasticsearch.fetch(tmp_path / "cache")
    (laid / archive.name).unlink()
    assert fetch_elasticsearch.fetch(tmp_path / "cache") == fetched


def test_a_registry_without_it_is_a_reason_to_skip(central: Path, tmp_path: Path) -> None:
    central.mkdir()
    with pytest.raises(fetch_elasticsearch.Unavailable, match="404"):
        fetch_elasticsearch.fetch(tmp_path / "cache")
    assert not (tmp_path / "cache" / fetch_elasticsearch.ARCHIVE).exists()


def test_programs_stay_executable_when_unpacked(archive: Path, tmp_path: Path) -> None:
    home = fetch_elasticsearch.unpack(archive, tmp_path / "unpacked")
    assert os.access(home / "bin" / "elasticsearch", os.X_OK)
    assert (home / "NOTICE.txt").read_text() == "notice"


def test_an_archive_with_the_pinned_digest_passes(archive: Path) -> None:
    fetch_elasticsearch.check(archive, hashlib.sha256(archive.read_bytes()).hexdigest())


def test_an_archive_in_the_cache_that_is_not_the_pinned_one_is_refused(archive: Path) -> None:
    with pytest.raises(fetch_elasticsearch.Tampered, match="remove it to fetch it again"):
        fetch_elasticsearch.fetch(archive.parent)


@pytest.mark.parametrize(
    ("release", "major"),
    [
        ('IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"\n', 17),
        ('JAVA_VERSION="25"\n', 25),
        ('JAVA_VERSION="1.8.0_402"\n', 1),
        ("OS_NAME=Linux\n", 0),
    ],
)
def test_the_java_version_is_read_from_the_release_file(release: str, major: int) -> None:
    assert fetch_elasticsearch.java_major(release) == major


def test_without_java_the_reason_says_which_is_needed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(fetch_elasticsearch.Unavailable, match="needs Java 17"):
        fetch_elasticsearch.java_home()


def test_settings_of_the_caller_win_over_ours() -> None:
    command = fetch_elasticsearch.command(Path("/home"), {"network.host": "::1", "http.port": "9"})
    assert command[0] == "/home/bin/elasticsearch"
    assert {"-Enetwork.host=::1", "-Ehttp.port=9", "-Ediscovery.type=single-node"} <= set(command)
    assert "-Enetwork.host=127.0.0.1" not in command
