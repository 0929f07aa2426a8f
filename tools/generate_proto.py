"""Generates the typed stubs in `memplane/v1` from `proto/`, or checks that they are current.

python tools/generate_proto.py            write the stubs
python tools/generate_proto.py --check    exit 1 and name the stubs that differ
python tools/generate_proto.py --lint     run buf's rules over the contract
"""

import argparse
import filecmp
import shutil
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path

from google.rpc import code_pb2

ROOT = Path(__file__).resolve().parent.parent
PROTOS = sorted((ROOT / "proto").rglob("*.proto"))
BIN = Path(sys.executable).parent


def main() -> int:
    """Runs the mode asked for; the exit code says whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--lint", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if args.lint:
            return lint(Path(scratch))
        generate(Path(scratch))
        return compare(Path(scratch)) if args.check else install(Path(scratch))


def include_flags(scratch: Path) -> list[str]:
    """Include paths: ours, Google's, and protoc's own.

    googleapis-common-protos ships `operations.proto` as `operations_proto.proto`; it is laid under its true name.
    """
    google = Path(code_pb2.__file__).parent.parent
    includes = scratch / "includes" / "google" / "longrunning"
    includes.mkdir(parents=True)
    shutil.copy(google / "longrunning" / "operations_proto.proto", includes / "operations.proto")
    well_known = resources.files("grpc_tools") / "_proto"
    return [f"-I{path}" for path in (ROOT / "proto", scratch / "includes", google.parent, well_known)]


def protoc(scratch: Path, *flags: str) -> None:
    """Runs protoc over all our files with the plugins of this environment."""
    plugins = [f"--plugin=protoc-gen-{name}={BIN / f'protoc-gen-{name}'}" for name in ("mypy", "mypy_grpc")]
    command = [sys.executable, "-m", "grpc_tools.protoc", *include_flags(scratch), *plugins, *flags]
    subprocess.run([*command, *map(str, PROTOS)], check=True)


def generate(scratch: Path) -> None:
    """Writes the stubs to `scratch/out`."""
    out = scratch / "out"
    out.mkdir()
    flags = [f"--{kind}_out={out}" for kind in ("python", "grpc_python", "mypy", "mypy_grpc")]
    protoc(scratch, *flags)
    (out / "memplane" / "v1" / "__init__.py").write_text('"""Stubs generated from `proto/memplane/v1`."""\n')


def stubs(root: Path) -> set[str]:
    """Names of the generated files below `root`."""
    return {path.name for path in (root / "memplane" / "v1").glob("*.py*") if path.is_file()}


def install(scratch: Path) -> int:
    """Replaces the stubs in the tree."""
    target = ROOT / "memplane" / "v1"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(scratch / "out" / "memplane" / "v1", target)
    return 0


def compare(scratch: Path) -> int:
    """1 when a stub in the tree differs from what would be generated, else 0."""
    names = sorted(stubs(ROOT) | stubs(scratch / "out"))
    fresh, tree = scratch / "out" / "memplane" / "v1", ROOT / "memplane" / "v1"
    _, differing, missing = filecmp.cmpfiles(fresh, tree, names, shallow=False)
    for name in [*differing, *missing]:
        sys.stderr.write(f"memplane/v1/{name} is not current: run `make proto`\n")
    return 1 if differing or missing else 0


def lint(scratch: Path) -> int:
    """Runs buf's rules (proto/buf.yaml) over the contract with its comments."""
    image = scratch / "image.binpb"
    protoc(scratch, "--include_imports", "--include_source_info", f"--descriptor_set_out={image}")
    config = ROOT / "proto" / "buf.yaml"
    return subprocess.run([str(BIN / "buf"), "lint", str(image), "--config", str(config)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
