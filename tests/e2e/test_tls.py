"""Both planes with certificates, as processes: who gets in, and a rotation of everything while they serve."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memplane.client import AdminClient, ClientTls, MemPlaneClient, RpcError
from memplane.v1 import policy_pb2
from tests.certificates import Authority, write_pair
from tests.deadline import eventually, eventually_async
from tests.e2e.commands import memplane
from tests.e2e.control_process import ADMIN_KEY, ControlProcess
from tests.e2e.data_process import DataProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CALLERS = 4
IN_USE = "certificate files are in use for new connections"


def write(folder: Path, authority: Authority, name: str) -> None:
    """A plane's certificate, which it also shows to the other plane."""
    write_pair(folder, authority.sign(name))
    (folder / "ca.crt").write_bytes(authority.pem)


def server_flags(folder: Path) -> list[str]:
    files = {"cert-file": "tls.crt", "key-file": "tls.key", "client-ca-file": "ca.crt"}
    flags = [part for name, file in files.items() for part in (f"--tls-{name}", str(folder / file))]
    return [*flags, "--tls-client-auth", "require", "--max-connection-age-s", "5"]


def channel_flags(folder: Path) -> list[str]:
    files = {"ca-file": "ca.crt", "cert-file": "tls.crt", "key-file": "tls.key"}
    return [part for name, file in files.items() for part in (f"--control-tls-{name}", str(folder / file))]


@dataclass
class Company:
    """Both planes and a client, each with a folder of certificates."""

    root: Path
    control: ControlProcess
    data: DataProcess
    authority: Authority = field(default_factory=lambda: Authority("authority-0"))
    failures: list[str] = field(default_factory=list)
    calls: int = 0
    steps: int = 0

    @property
    def folders(self) -> list[Path]:
        return [self.root / name for name in ("tls-control", "tls-data", "tls-client")]

    @property
    def tls(self) -> ClientTls:
        folder = self.root / "tls-client"
        return ClientTls(folder / "ca.crt", folder / "tls.crt", folder / "tls.key")

    def client(self) -> MemPlaneClient:
        return MemPlaneClient(self.data.address, ADMIN_KEY, tls=self.tls)

    async def statuses(self) -> list[policy_pb2.DataPlaneStatus]:
        async with AdminClient(self.control.address, ADMIN_KEY, tls=self.tls) as admin:
            return list((await admin.data_planes()).data_planes)

    async def told(self) -> set[tuple[str, str]]:
        """Purpose and subject of each certificate that the data plane tells of, while it is connected."""
        return {
            (each.purpose, each.subject)
            for status in await self.statuses()
            if status.connected
            for each in status.report.certificates
        }

    async def call_on(self) -> None:
        """Writes and reads until cancelled; without end, also over the ends of connections."""
        async with self.client() as client:
            while True:
                await self._count(client)

    async def call_anew(self) -> None:
        while True:
            async with self.client() as client:
                await self._count(client)

    async def _count(self, client: MemPlaneClient) -> None:
        try:
            await client.search("dept.sales", "When does Acme renew?")
        except RpcError as error:
            self.failures.append(error.sentence())
        self.calls += 1

    async def settle(self, authorities: bytes, expected: set[tuple[str, str]]) -> None:
        """Puts the authorities in use; until both planes say that they use what is expected."""
        for folder in self.folders:
            (folder / "ca.crt").write_bytes(authorities)
        self.steps += 1
        await eventually(lambda: self.control.log_file.read_text().count(IN_USE), self.steps.__le__, 60)
        await eventually_async(self.told, expected.__eq__, 60)

    async def rotate(self, number: int) -> None:
        before, after = self.authority, Authority(f"authority-{number}")
        trusted = {("ca", f"CN=authority-{number - 1}"), ("ca", f"CN=authority-{number}")}
        old = {("server", f"CN=data-{number - 1}"), ("client", f"CN=data-{number - 1}")}
        await self.settle(before.pem + after.pem, old | trusted)
        for folder in self.folders:
            write_pair(folder, after.sign(f"{folder.name.removeprefix('tls-')}-{number}"))
        new = {("server", f"CN=data-{number}"), ("client", f"CN=data-{number}")}
        await self.settle(before.pem + after.pem, new | trusted)
        await self.settle(after.pem, new | {("ca", f"CN=authority-{number}")})
        self.authority = after


async def started(root: Path) -> Company:
    folder = root / "policies"
    folder.mkdir()
    (folder / "retrieve.yaml").write_text("retrieve_policy:\n  top_k: 6\n")
    control = ControlProcess(root / "control", folder, flags=server_flags(root / "tls-control"))
    data = DataProcess(root / "data", control.listen, root / "control" / "signing_key.pub")
    company = Company(root, control, data)
    for each in company.folders:
        write(each, company.authority, f"{each.name.removeprefix('tls-')}-0")
    await control.start()
    data.flags = [*server_flags(root / "tls-data"), *channel_flags(root / "tls-data")]
    await data.start()
    expected = {("server", "CN=data-0"), ("client", "CN=data-0"), ("ca", "CN=authority-0")}
    await eventually_async(company.told, expected.__eq__, 60)
    return company


async def test_everything_is_rotated_under_load_and_strangers_stay_out(tmp_path: Path) -> None:
    company = await started(tmp_path)
    async with company.client() as client:
        await client.write("dept.sales", "Remember: Acme renews in March.", source="USER")
    callers = [asyncio.create_task(company.call_on() if n % 2 else company.call_anew()) for n in range(CALLERS)]
    for number in (1, 2):
        await company.rotate(number)
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    assert company.failures == []
    assert company.calls > 100
    for plane in (company.control, company.data):
        log = plane.log_file.read_text()
        assert "WARNING" not in log
        assert "ERROR" not in log
    await strangers_stay_out(company)
    await company.data.stop()
    assert await company.control.stop() == 0


async def strangers_stay_out(company: Company) -> None:
    """The command line, with other certificates, without, and in clear."""
    folder = company.root / "tls-client"
    health = ("health", "--target", company.data.address)
    trusting = (*health, "--tls-ca", str(folder / "ca.crt"))
    own = ("--tls-cert", str(folder / "tls.crt"), "--tls-key", str(folder / "tls.key"))
    assert (await memplane(*trusting, *own, cwd=company.root)).code == 0
    certificate, key = write_pair(company.root / "stranger", Authority("stranger").sign())
    for refused in (health, trusting, (*trusting, "--tls-cert", str(certificate), "--tls-key", str(key))):
        answer = await memplane(*refused, cwd=company.root)
        assert (answer.code, answer.stdout) == (1, "NO_ANSWER\n")


async def test_a_plane_does_not_serve_other_machines_in_clear_unless_asked_to(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    control = ControlProcess(tmp_path / "control", tmp_path / "policies", listen="0.0.0.0:0")
    process = await control.spawn()
    assert await process.wait() == 2
    assert "insecure on where the network is trusted" in control.log_file.read_text()
    control.flags = ["--insecure", "on"]
    await control.start()
    assert "takes calls of other machines IN CLEAR" in control.log_file.read_text()
    await control.stop()
