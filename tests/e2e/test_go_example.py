"""The Go example against running planes: generated from the .proto files, built and run where Go is installed.

The first run compiles grpc-go (about a minute on two cores); later ones take some seconds from Go's build cache.
"""

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from google.rpc import code_pb2

from memplane.cli.config import plane_environment
from memplane.cli.planes import PlaneSettings, planes

ROOT = Path(__file__).resolve().parents[2]
TOOLS = (
    "google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12",
    "google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2",
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(420),
    pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed"),
]


def go(folder: Path, environment: dict[str, str], *arguments: str) -> None:
    subprocess.run(["go", *arguments], cwd=folder, env=environment, check=True, timeout=300)


def build(folder: Path) -> Path:
    """Generates the stubs beside a copy of the example and builds it; the program's path."""
    shutil.copytree(ROOT / "examples" / "go", folder, ignore=shutil.ignore_patterns("memplanev1"))
    binaries = folder / "bin"
    environment = plane_environment({"GOBIN": str(binaries), "GOFLAGS": "-buildvcs=false"})
    if subprocess.run(["go", "mod", "download"], cwd=folder, env=environment, check=False, timeout=300).returncode:
        pytest.skip("the Go modules of the example could not be fetched")
    for tool in TOOLS:
        go(folder, environment, "install", tool)
    generate(folder, {**environment, "PATH": f"{binaries}:{environment['PATH']}"})
    go(folder, environment, "build", "-o", "client", ".")
    return folder / "client"


def generate(folder: Path, environment: dict[str, str]) -> None:
    """googleapis-common-protos ships `operations.proto` under another name; it is laid under its own."""
    google = Path(code_pb2.__file__).parent.parent
    longrunning = folder / "includes" / "google" / "longrunning"
    longrunning.mkdir(parents=True)
    shutil.copy(google / "longrunning" / "operations_proto.proto", longrunning / "operations.proto")
    settings = {
        "PROTOC": f"{sys.executable} -m grpc_tools.protoc",
        "PROTO_DIR": str(ROOT / "proto"),
        "INCLUDES": f"-I{folder / 'includes'} -I{google.parent}",
    }
    subprocess.run(["./generate.sh"], cwd=folder, env={**environment, **settings}, check=True, timeout=60)


async def run(program: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Exit code and all output."""
    process = await asyncio.create_subprocess_exec(
        str(program), env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode or 0, output.decode()


async def test_the_go_example_writes_and_finds_a_memory(tmp_path):
    program = await asyncio.to_thread(build, tmp_path / "go")
    async with planes(PlaneSettings(tmp_path / "planes", embedder="hash")) as running:
        environment = {"MEMPLANE_TARGET": running.data_address, "MEMPLANE_API_KEY": running.admin_key}
        code, output = await run(program, environment)
        refused_code, refused = await run(program, {**environment, "MEMPLANE_API_KEY": "wrong"})
    assert code == 0, output
    assert "DECISION_ACTION_CREATED" in output
    assert "Acme renews its service contract every March." in output
    assert refused_code == 1
    assert "[UNAUTHENTICATED]" in refused
