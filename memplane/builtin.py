"""Where the policies that ship with MemPlane lie."""

from pathlib import Path


def policies_folder(name: str) -> Path:
    """The shipped policy folder `name`, such as `default` or `examples/evaluation`.

    Raises:
        FileNotFoundError: No such folder is shipped.
    """
    package = Path(__file__).resolve().parent
    for root in (package / "policies", package.parent / "policies"):  # installed; a source checkout
        folder = root / name
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"no shipped policy folder {name!r}")
