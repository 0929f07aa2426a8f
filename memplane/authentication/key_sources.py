"""Where a key set comes from: a file that is read again when it changes, or a server."""

import asyncio
import os
import ssl
from pathlib import Path
from typing import Protocol

import httpx

from memplane.authentication.key_set import MAX_BYTES

FETCH_S = 5.0
"""How long a server may take to send its keys. Unmeasured."""
FILE_POLL_S = 1.0


class SourceFailed(Exception):
    """The keys cannot be read now; the text tells why."""


class KeySource(Protocol):
    """Bytes of a key set. `poll_s`: how often to look."""

    poll_s: float

    async def read(self) -> bytes | None:
        """The bytes; None: they are the same as last time. Raises SourceFailed."""
        ...


class KeyFile:
    """A file, replaced by renaming or written anew. Half of it is no JSON, and is looked at again when it grows."""

    poll_s = FILE_POLL_S

    def __init__(self, path: Path):
        self._path = path
        self._seen: tuple[int, int, int] | None = None

    async def read(self) -> bytes | None:
        """See the protocol."""
        try:
            return await asyncio.to_thread(self._read)
        except OSError as error:
            self._seen = None
            raise SourceFailed(f"{self._path}: {error.strerror or error}") from error

    def _read(self) -> bytes | None:
        with self._path.open("rb") as file:
            state = os.fstat(file.fileno())
            seen = (state.st_mtime_ns, state.st_size, state.st_ino)
            if seen == self._seen:
                return None
            data = file.read(MAX_BYTES + 1)
        self._seen = seen
        return data


class KeyUrl:
    """A server's URL. Redirects are not followed: they would move trust to another server. `ca_file`: of its issuer."""

    def __init__(self, url: str, poll_s: float, ca_file: Path | None = None):
        self.poll_s = poll_s
        self._url = url
        self._ca_file = ca_file

    async def read(self) -> bytes | None:
        """See the protocol."""
        try:
            async with asyncio.timeout(FETCH_S):
                return await self._fetch()
        except TimeoutError as error:
            raise SourceFailed(f"{self._url}: no answer in {FETCH_S:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:  # OSError: the CA file
            raise SourceFailed(f"{self._url}: {type(error).__name__}: {error}") from error

    async def _fetch(self) -> bytes:
        trusted = True if self._ca_file is None else ssl.create_default_context(cafile=str(self._ca_file))
        async with (
            httpx.AsyncClient(verify=trusted, timeout=FETCH_S, follow_redirects=False) as client,
            client.stream("GET", self._url, headers={"accept": "application/json"}) as response,
        ):
            if response.status_code != httpx.codes.OK:
                raise SourceFailed(f"{self._url}: answered {response.status_code}")
            data = b""
            async for part in response.aiter_bytes():
                data += part
                if len(data) > MAX_BYTES:
                    raise SourceFailed(f"{self._url}: more than {MAX_BYTES} bytes")
            return data
