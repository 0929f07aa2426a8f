"""`python -m bench.reloads [SECONDS]`: policies change all the while; is any answer another version's?

First in one process: a reload every 50 ms beside 8 checkers, each answer compared with one worked out beforehand. Then
over gRPC: a control plane and a data plane as processes, 8 clients, reloads one after the other; each search asks for
two namespaces, of which every policy lets its caller read another, so that the namespaces left out tell whose answer it
is, and `policy_version` must be that policy's.
"""

import asyncio
import os
import platform
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import grpc
import uvloop

from controlplane.documents import Document, version_of_set
from memplane.policy.access import hash_api_key
from memplane.v1 import memory_service_pb2 as pb
from tests.e2e.control_process import ControlProcess, control_plane
from tests.e2e.data_process import DataProcess, stub_of
from tests.e2e.test_reload_acks import reload_request
from tests.integration.reload_race import Count, race, versions

SECONDS = 60.0
RELOAD_EVERY_S = 0.05
LEAST_CHECKS_A_SECOND = 1_000_000 / 60
CLIENTS = 8
KEY = "mpk_00000000_key-of-the-benchmark"
SPACES = ("team.red", "team.blue")
CONTENTS = 50
"""Contents of each of the two outcomes."""


def policy_for(number: int) -> str:
    """YAML that lets the client read one of SPACES, in turn; `top_k` makes each content another one."""
    return (
        f"retrieve_policy:\n  top_k: {1 + number // 2 % CONTENTS}\n"
        f"rbac:\n  principals:\n    client:\n      api_key_sha256: [{hash_api_key(KEY)}]\n"
        f"      grants: [{{namespace: {SPACES[number % 2]}, permissions: [memory.read]}}]\n"
    )


def version_for(number: int) -> str:
    """The version of that policy."""
    return version_of_set([Document("a.yaml", policy_for(number).encode())])


async def in_one_process(seconds: float) -> Count:
    """Reloads beside checkers for so long, and on until as many checks were made as a minute is to have."""
    known = versions()
    until_s, least = time.monotonic() + seconds, LEAST_CHECKS_A_SECOND * seconds
    return await race(known, RELOAD_EVERY_S, lambda seen: time.monotonic() >= until_s and seen.checks >= least)


async def over_grpc(folder: Path, seconds: float) -> Counter[str]:
    """Real planes for so long: answers, reloads, and what was wrong."""
    (folder / "policies").mkdir()
    (folder / "policies" / "a.yaml").write_text(policy_for(0))
    async with control_plane(folder) as control:
        data = DataProcess(folder / "data", control.address, control.data_dir / "signing_key.pub")
        await data.start()
        try:
            await data.wait_ready()
            return await _searched(control, data, seconds)
        finally:
            await data.kill()


async def _searched(control: ControlProcess, data: DataProcess, seconds: float) -> Counter[str]:
    count: Counter[str] = Counter()
    omitted_by = {version_for(number): SPACES[1 - number % 2] for number in range(2 * CONTENTS)}
    stop = asyncio.Event()
    clients = [asyncio.create_task(_search(data, omitted_by, count, stop)) for _ in range(CLIENTS)]
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        count["reloads"] += 1
        request = reload_request({"a.yaml": policy_for(count["reloads"]).encode()}, wait_s=20)
        request.allow_shrink = True
        count["reloads not complete"] += not (await control.call("ReloadPolicySet", request)).propagation.complete
    stop.set()
    await asyncio.gather(*clients)
    return count


async def _search(data: DataProcess, omitted_by: Mapping[str, str], count: Counter[str], stop: asyncio.Event) -> None:
    request = pb.SearchMemoriesRequest(namespaces=SPACES, query="who repaired the pump", record_access=False)
    async with data.channel() as channel:
        while not stop.is_set():
            try:
                metadata = (("authorization", f"Bearer {KEY}"),)
                answer = await stub_of(channel).SearchMemories(request, metadata=metadata, timeout=30)
            except grpc.aio.AioRpcError as error:
                count[f"failed: {error.code().name}"] += 1
                continue
            count["answers"] += 1
            count["answers of another version"] += list(answer.omitted_namespaces) != [
                omitted_by.get(answer.policy_version)
            ]


async def main(seconds: float) -> None:
    """Runs both, prints a table."""
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}\n")
    seen = await in_one_process(seconds)
    print(f"| in one process, {seconds:g} s, a reload each {RELOAD_EVERY_S * 1000:g} ms | |\n|---|---|")
    print(f"| reloads / versions seen | {seen.reloads} / {len(seen.versions)} |")
    print(f"| checks / wrong (goal 0 of 1,000,000) | {seen.checks} / {seen.wrong} |")
    print(f"| requests / with two versions (goal 0) | {seen.requests} / {seen.mixed} |\n")
    with tempfile.TemporaryDirectory() as folder:
        count = await over_grpc(Path(folder), seconds)
    print(f"| over gRPC, {seconds:g} s, {CLIENTS} clients | |\n|---|---|")
    for what in sorted({"reloads", "reloads not complete", "answers", "answers of another version", *count}):
        print(f"| {what} | {count[what]} |")


if __name__ == "__main__":
    uvloop.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS))
