"""Embeds texts in a child process, since the command line imports no plane; see `dataplane.embed`."""

import asyncio
import json
import sys
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from memplane.cli.config import plane_environment
from memplane.evaluation.calibrate import Vectors
from memplane.evaluation.similarity_fit import Floats

MODULE = "dataplane.embed"
LONGEST_LINE = 1024 * 1024
"""A vector of 65,536 dimensions in base64 takes 350 kB."""


class EmbeddingFailed(Exception):
    """The texts could not be embedded; the text says why and what to do."""


async def embed(
    settings: Mapping[str, object], questions: Sequence[str], passages: Sequence[str], advance: Callable[[], object]
) -> Vectors:
    """The vectors of the texts; `advance` is called after each. Raises EmbeddingFailed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", MODULE),
        env=plane_environment({}),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=LONGEST_LINE,
    )
    assert process.stderr is not None
    complaints = asyncio.create_task(process.stderr.read())
    texts = [*(("question", text) for text in questions), *(("passage", text) for text in passages)]
    try:
        await _ask(process, [settings, *({"as": kind, "text": text} for kind, text in texts)])
        model, vectors = await _answers(process, len(texts), advance)
        if await process.wait() or len(vectors) < len(texts):
            raise EmbeddingFailed(_last_line(await complaints) or f"{MODULE} ended with {process.returncode}")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        complaints.cancel()
    asked = dict(zip(questions, vectors, strict=False))
    return Vectors(model, asked, dict(zip(passages, vectors[len(questions) :], strict=True)))


async def _ask(process: asyncio.subprocess.Process, lines: Sequence[object]) -> None:
    assert process.stdin is not None
    try:
        for line in lines:
            process.stdin.write(json.dumps(line).encode() + b"\n")
            await process.stdin.drain()
        process.stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        return  # It has ended; its exit code and its last words tell why.


async def _answers(
    process: asyncio.subprocess.Process, count: int, advance: Callable[[], object]
) -> tuple[str, list[Floats]]:
    assert process.stdout is not None
    head = await process.stdout.readline()
    vectors: list[Floats] = []
    while len(vectors) < count and (line := await process.stdout.readline()):
        vectors.append(np.frombuffer(b64decode(json.loads(line)["vector"]), dtype="<f4").astype(np.float64))
        advance()
    return (str(json.loads(head)["model"]) if head else ""), vectors


def _last_line(complaints: bytes) -> str:
    lines = complaints.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""
