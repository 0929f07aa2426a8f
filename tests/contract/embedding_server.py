"""An OpenAI-compatible embeddings server in this process, over HashEmbedder's vectors, that fails as it is told to."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from dataplane.adapters.inmemory.embedder import HashEmbedder

MODEL = "hash"
Answer = Callable[[dict[str, Any]], Awaitable[web.StreamResponse]]


@dataclass
class EmbeddingServer:
    """What it was asked, and what it shall answer next; with nothing scripted it embeds."""

    url: str = ""
    script: deque[Answer] = field(default_factory=deque)
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    seconds: float = 0.0
    running: int = 0
    most_running: int = 0
    moved: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append(body)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        await self._tell()
        try:
            answer = self.script.popleft() if self.script else self._embed
            return await answer(body)
        finally:
            self.running -= 1
            await self._tell()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Returns once `holds` does; it is asked whenever a request begins or ends."""
        async with asyncio.timeout(10), self.moved:
            await self.moved.wait_for(holds)

    async def _tell(self) -> None:
        async with self.moved:
            self.moved.notify_all()

    async def _embed(self, body: dict[str, Any]) -> web.Response:
        await asyncio.sleep(self.seconds)
        if body["model"] != MODEL:
            return web.json_response({"error": {"code": "model_not_found", "message": "no such model"}}, status=404)
        return web.json_response({"data": await vectors(body), "model": MODEL, "object": "list"})


async def vectors(body: dict[str, Any]) -> list[dict[str, Any]]:
    """`data` of a right answer."""
    deadline_s = asyncio.get_running_loop().time() + 60
    made = await HashEmbedder().embed_passages(body["input"], deadline_s)
    return [{"object": "embedding", "index": at, "embedding": (3 * one).tolist()} for at, one in enumerate(made)]


def status(code: int, body: Any = None, **headers: str) -> Answer:
    """Answers with a status; a text body is sent as HTML, any other as JSON."""

    async def answer(_body: dict[str, Any]) -> web.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if isinstance(body, str):
            return web.Response(status=code, text=body, content_type="text/html", headers=named)
        return web.json_response(body, status=code, headers=named)

    return answer


def changed(change: Callable[[list[dict[str, Any]]], object]) -> Answer:
    """Answers with what `change` makes of right `data`: NaN and all, as Python writes it."""

    async def answer(body: dict[str, Any]) -> web.Response:
        return web.Response(text=json.dumps({"data": change(await vectors(body))}), content_type="application/json")

    return answer


async def hang(_body: dict[str, Any]) -> web.Response:
    """Does not answer."""
    await asyncio.sleep(3600)
    raise AssertionError


async def drop(_body: dict[str, Any]) -> web.Response:
    """Breaks the connection off."""
    raise asyncio.CancelledError


@asynccontextmanager
async def serving() -> AsyncIterator[EmbeddingServer]:
    """The server on a free port, at `/v1`."""
    server = EmbeddingServer()
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/embeddings", server.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()
