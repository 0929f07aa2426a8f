"""Which embedding model's index is active, as a file beside the models' folders."""

import asyncio
import json
import re
from hashlib import blake2b
from pathlib import Path

from dataplane.adapters.edge.files import write_whole
from dataplane.errors import BackendUnavailable

_FILE = "active.json"


def folder_name(model: str) -> str:
    """The folder of a model's index: its name as far as a file name may hold it, and a hash that tells it apart."""
    plain = re.sub(r"[^A-Za-z0-9.-]+", "-", model).strip("-.")[:60]
    return f"{plain}_{blake2b(model.encode(), digest_size=4).hexdigest()}"


class ActiveModelFile:
    """The file; replaced by one rename, so that it names one model or the other whenever a process is killed."""

    def __init__(self, folder: Path, backend: str):
        self._folder = folder
        self._backend = backend

    async def read(self, deadline_s: float) -> str:
        """The model; "" when none was activated yet."""
        self._check(deadline_s)
        try:
            found = json.loads(await asyncio.to_thread((self._folder / _FILE).read_text, "utf-8"))
        except FileNotFoundError:
            return ""
        except (OSError, ValueError) as error:
            raise BackendUnavailable(self._backend, f"{_FILE}: {error}") from error
        return str(found.get("model", "")) if isinstance(found, dict) else ""

    async def write(self, model: str, deadline_s: float) -> None:
        """Names the model, durably."""
        self._check(deadline_s)
        try:
            await asyncio.to_thread(self._replace, model)
        except OSError as error:
            raise BackendUnavailable(self._backend, f"{_FILE}: {error.strerror}") from error

    def _replace(self, model: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        write_whole(self._folder / _FILE, {"model": model})

    def _check(self, deadline_s: float) -> None:
        if asyncio.get_running_loop().time() > deadline_s:
            raise BackendUnavailable(self._backend, "deadline passed")
