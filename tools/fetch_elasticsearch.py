"""Fetches the Elasticsearch that the tests run, checks it against its pinned digest and unpacks it; or runs it.

python tools/fetch_elasticsearch.py                      fetch it into the cache and say where it lies
python tools/fetch_elasticsearch.py --run FOLDER         unpack it into a new folder and serve it on port 9200

It is the distribution of Elasticsearch's own integration tests, by its coordinates from Maven Central: the core
without modules. Maven fetches it where there is one, for it knows the user's mirrors and proxies; plain HTTPS else.
"""

import argparse
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import httpx

GROUP = "org.elasticsearch.distribution.integ-test-zip"
ARTIFACT = "elasticsearch"
VERSION = "8.19.7"
SHA256 = "cb7f86fb6e68e85ef6f531ae5c68458ecfe42371150403b22b2ed21381581cbb"
ARCHIVE = f"{ARTIFACT}-{VERSION}.zip"
CENTRAL = "https://repo1.maven.org/maven2"
COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
OLDEST_JAVA = 17
CACHE = Path.home() / ".cache" / "memplane"
# A small heap, and the first compiler alone: it starts sooner and never runs long.
JAVA_OPTIONS = "-Xms512m -Xmx512m -XX:TieredStopAtLevel=1"
SETTINGS = {
    "discovery.type": "single-node",
    "network.host": "127.0.0.1",
    "xpack.security.enabled": "false",
    "node.store.allow_mmap": "false",  # works whatever vm.max_map_count is
    "cluster.routing.allocation.disk.threshold_enabled": "false",  # a full disk must not make indexes read-only
}


class Unavailable(Exception):
    """Elasticsearch cannot be had here; the message says what is missing."""


class Tampered(Exception):
    """What was fetched is not what was pinned."""


def main() -> int:
    """Runs the mode asked for; the exit code is 1 where Elasticsearch cannot be had."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder that keeps the archive")
    parser.add_argument("--run", type=Path, metavar="FOLDER", help="serve it from this new folder")
    parser.add_argument("--port", type=int, default=9200)
    args = parser.parse_args()
    try:
        archive = fetch(args.cache)
        if args.run is None:
            print(archive)
            return 0
        return run(unpack(archive, args.run), args.port)
    except (Unavailable, Tampered) as error:
        print(error, file=sys.stderr)
        return 1


def fetch(cache: Path) -> Path:
    """The archive in the cache, fetched where it is not there yet; safe in several processes at once.

    Raises Unavailable where it cannot be fetched, Tampered where its digest is not the pinned one.
    """
    cache.mkdir(parents=True, exist_ok=True)
    archive = cache / ARCHIVE
    with (cache / f"{ARCHIVE}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                fetched = _by_maven(Path(scratch)) if shutil.which("mvn") else _by_https(Path(scratch))
                check(fetched, SHA256)
                fetched.replace(archive)
    check(archive, SHA256)
    return archive


def check(archive: Path, sha256: str) -> None:
    """Raises Tampered unless the file has this digest (hexadecimal)."""
    with archive.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != sha256:
        raise Tampered(f"{archive} has the SHA-256 {found}, pinned is {sha256}; remove it to fetch it again")


def unpack(archive: Path, folder: Path) -> Path:
    """Unpacks into the folder, programs executable, and returns the home of Elasticsearch in it."""
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            path = Path(opened.extract(member, folder))
            if not member.is_dir() and member.external_attr >> 16:
                path.chmod((member.external_attr >> 16) & 0o777)
    return folder / f"{ARTIFACT}-{VERSION}"


def command(home: Path, settings: Mapping[str, str]) -> list[str]:
    """What starts Elasticsearch, with these settings over ours."""
    return [
        str(home / "bin" / "elasticsearch"),
        *(f"-E{name}={value}" for name, value in {**SETTINGS, **settings}.items()),
    ]


def environment() -> dict[str, str]:
    """Variables that Elasticsearch needs; Unavailable where there is no Java that it can use."""
    return {"ES_JAVA_HOME": str(java_home()), "ES_JAVA_OPTS": JAVA_OPTIONS}


def java_home() -> Path:
    """The home of the `java` on the path; Unavailable where there is none or it is too old."""
    found = shutil.which("java")
    if found is None:
        raise Unavailable(f"Elasticsearch {VERSION} needs Java {OLDEST_JAVA} or newer on the path")
    home = Path(found).resolve().parent.parent
    release = home / "release"
    major = java_major(release.read_text()) if release.exists() else 0
    if major < OLDEST_JAVA:
        raise Unavailable(
            f"Elasticsearch {VERSION} needs Java {OLDEST_JAVA} or newer; {home} has {major or 'none said'}"
        )
    return home


def java_major(release: str) -> int:
    """The major version that a JDK's `release` file states; 0 when it states none, 1 for those before 9."""
    stated = re.search(r'^JAVA_VERSION="(\d+)', release, re.MULTILINE)
    return int(stated[1]) if stated else 0


def central_url() -> str:
    """Where Maven Central has the archive."""
    return f"{CENTRAL}/{GROUP.replace('.', '/')}/{ARTIFACT}/{VERSION}/{ARCHIVE}"


def run(home: Path, port: int) -> int:
    """Serves until it is interrupted."""
    if os.geteuid() == 0:
        raise Unavailable("Elasticsearch refuses to run as root: run this as another user")
    variables = [f"{name}={value}" for name, value in environment().items()]
    return subprocess.run(
        ["/usr/bin/env", *variables, *command(home, {"http.port": str(port)})], check=False
    ).returncode


def _by_maven(folder: Path) -> Path:
    coordinates = f"-Dartifact={GROUP}:{ARTIFACT}:{VERSION}:zip"
    maven = [str(shutil.which("mvn")), "-q", "-B", COPY_GOAL, coordinates, f"-DoutputDirectory={folder}"]
    try:
        done = subprocess.run(maven, capture_output=True, text=True, check=False, timeout=300)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"Maven did not fetch {ARCHIVE} within 300 s") from None
    if done.returncode != 0:
        raise Unavailable(f"Maven could not fetch {ARCHIVE}: {(done.stdout + done.stderr)[-600:]}")
    return folder / ARCHIVE


def _by_https(folder: Path) -> Path:
    archive = folder / ARCHIVE
    try:
        with httpx.stream("GET", central_url(), timeout=30, follow_redirects=True) as answer, archive.open("wb") as out:
            answer.raise_for_status()
            for chunk in answer.iter_bytes():
                out.write(chunk)
    except httpx.HTTPError as error:
        raise Unavailable(f"Maven Central did not give {ARCHIVE}: {error}") from None
    return archive


if __name__ == "__main__":
    sys.exit(main())
