import asyncio
import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from memplane.process import SystemClock
from memplane.rpc.certificate_metrics import tell_of_certificates
from memplane.rpc.certificate_watch import CertificateWatch, WatchOptions
from memplane.rpc.certificates import BadCertificate, TlsFiles
from tests.certificates import DAY, Authority, Pair, write_pair
from tests.deadline import eventually

AUTHORITY = Authority()
QUICK = WatchOptions(poll_s=0.01, settle_s=0.0)


class ShiftedClock:
    def __init__(self) -> None:
        self.ahead_us = 0

    def now_us(self) -> int:
        return SystemClock().now_us() + self.ahead_us


def watch_of(folder: Path, clock: ShiftedClock | None = None) -> CertificateWatch:
    files = TlsFiles(folder / "tls.crt", folder / "tls.key", folder / "ca.crt")
    return CertificateWatch(files, "server", clock or ShiftedClock(), QUICK)


@pytest.fixture
def watch(tmp_path: Path) -> CertificateWatch:
    """Has taken a first pair."""
    write_pair(tmp_path, AUTHORITY.sign("first"))
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.pem)
    found = watch_of(tmp_path)
    found.load()
    return found


async def look_twice(watch: CertificateWatch) -> None:
    """What is wrong at one look may be half of a change."""
    await watch.look()
    await watch.look()


def subject(watch: CertificateWatch) -> str:
    return watch.facts[0].subject


async def test_a_new_pair_is_taken_whole(watch: CertificateWatch, tmp_path: Path) -> None:
    pair = AUTHORITY.sign("second")
    write_pair(tmp_path, pair)
    await watch.look()
    assert (subject(watch), watch.problem, watch.renewal_count) == ("CN=second", "", 1)
    assert (watch.material.certificate_pem, watch.material.key_pem) == (pair.certificate, pair.key)


async def test_the_same_content_stays_the_same_material(watch: CertificateWatch) -> None:
    before = watch.material
    await watch.look()
    assert (watch.material is before, watch.renewal_count) == (True, 0)


async def test_a_pair_of_which_one_half_is_new_is_not_taken_until_the_other_is(
    watch: CertificateWatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pair = AUTHORITY.sign("second")
    (tmp_path / "tls.crt").write_bytes(pair.certificate)
    with caplog.at_level(logging.ERROR):
        await watch.look()
        assert (subject(watch), watch.problem, len(caplog.records)) == ("CN=first", "", 0)
        await look_twice(watch)
    assert (subject(watch), len(caplog.records)) == ("CN=first", 1)
    assert "does not fit the key" in watch.problem
    assert {status.problem for status in watch.statuses()} == {watch.problem}
    (tmp_path / "tls.key").write_bytes(pair.key)
    await watch.look()
    assert (subject(watch), watch.problem) == ("CN=second", "")


@pytest.mark.parametrize("end", [60, 1600])
async def test_a_file_that_is_half_written_is_not_taken(end: int, watch: CertificateWatch, tmp_path: Path) -> None:
    chain = AUTHORITY.sign("second").certificate + AUTHORITY.sign("middle").certificate
    (tmp_path / "tls.crt").write_bytes(chain[: min(end, len(chain) - 30)])
    await look_twice(watch)
    assert (subject(watch), bool(watch.problem)) == ("CN=first", True)


async def test_a_bundle_that_still_grows_is_not_taken(watch: CertificateWatch, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut between two certificates it is well-formed: only that it changes tells it from a whole one."""
    first = watch.material
    cut, whole = (replace(first, authorities_pem=Authority("second").pem + more) for more in (b"", AUTHORITY.pem))
    contents = iter((cut, whole, whole, whole))
    monkeypatch.setattr("memplane.rpc.certificate_watch.read_files", lambda _files: next(contents))
    await watch.look()
    assert watch.material is first
    await watch.look()
    assert watch.material == whole


async def test_an_expired_one_is_not_taken_and_one_that_is_early_is_taken_in_time(tmp_path: Path) -> None:
    clock = ShiftedClock()
    write_pair(tmp_path, AUTHORITY.sign("first"))
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.pem)
    watch = watch_of(tmp_path, clock)
    watch.load()
    write_pair(tmp_path, AUTHORITY.sign("expired", begin=-2 * DAY, end=-DAY))
    await look_twice(watch)
    assert (subject(watch), "expired" in watch.problem) == ("CN=first", True)
    write_pair(tmp_path, AUTHORITY.sign("early", begin=DAY / 2))
    await look_twice(watch)
    assert (subject(watch), "not valid before" in watch.problem) == ("CN=first", True)
    clock.ahead_us = int(DAY.total_seconds() * 1_000_000)
    await watch.look()
    assert (subject(watch), watch.problem) == ("CN=early", "")


async def test_files_that_vanish_leave_what_is_in_use(watch: CertificateWatch, tmp_path: Path) -> None:
    (tmp_path / "tls.key").unlink()
    await look_twice(watch)
    assert (subject(watch), "No such file" in watch.problem) == ("CN=first", True)


def publish(mount: Path, version: str, pair: Pair, authorities: bytes) -> None:
    """What Kubernetes does to a mounted secret: a new folder, then one rename of the link that all files go through."""
    write_pair(mount / version, pair)
    (mount / version / "ca.crt").write_bytes(authorities)
    fresh = mount / "..data_tmp"
    fresh.symlink_to(version)
    os.replace(fresh, mount / "..data")
    for name in ("tls.crt", "tls.key", "ca.crt"):
        if not (mount / name).is_symlink():
            (mount / name).symlink_to(f"..data/{name}")


async def test_a_mounted_secret_is_followed_over_many_swaps(tmp_path: Path) -> None:
    publish(tmp_path, "..v0", AUTHORITY.sign("v0"), AUTHORITY.pem)
    watch = watch_of(tmp_path)
    watch.load()
    running = asyncio.create_task(watch.run())
    for version in range(1, 6):
        authority = Authority(f"ca-{version}")
        publish(tmp_path, f"..v{version}", authority.sign(f"v{version}"), authority.pem)
        expected = [f"CN=v{version}", f"CN=ca-{version}"]
        await eventually(lambda: [each.subject for each in watch.facts], expected.__eq__)
    running.cancel()
    assert watch.problem == ""


async def test_what_nobody_thought_of_is_told_and_does_not_end_the_watch(
    watch: CertificateWatch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise MemoryError

    write_pair(tmp_path, AUTHORITY.sign("second"))
    with monkeypatch.context() as patch:
        patch.setattr("memplane.rpc.certificate_watch.check", fails)
        await look_twice(watch)
    assert (watch.fault_count, watch.problem) == (2, "MemoryError: ")
    await watch.look()
    assert (subject(watch), watch.problem) == ("CN=second", "")


def test_what_cannot_be_used_at_the_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadCertificate):
        watch_of(tmp_path).load()


async def test_metrics_tell_the_days_left_and_that_newer_files_are_refused(
    watch: CertificateWatch, tmp_path: Path
) -> None:
    registry = CollectorRegistry()
    tell_of_certificates(registry, [watch], ShiftedClock())

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"memplane_certificate_{name}", labels)

    assert value("days_left", purpose="server", subject="CN=first") == pytest.approx(2, abs=0.01)
    assert value("days_left", purpose="ca", subject="CN=authority") == pytest.approx(10, abs=0.01)
    assert (value("refused", purpose="server"), value("renewals_total", purpose="server")) == (0, 0)
    (tmp_path / "tls.key").unlink()
    await look_twice(watch)
    assert value("refused", purpose="server") == 1
    write_pair(tmp_path, AUTHORITY.sign("second"))
    await watch.look()
    assert (value("refused", purpose="server"), value("renewals_total", purpose="server")) == (0, 1)
