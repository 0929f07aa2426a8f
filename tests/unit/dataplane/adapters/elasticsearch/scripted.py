"""An Elasticsearch that answers as it is told, for what a real one cannot be made to do."""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

SECRET = "what the memory says"
PRODUCT = {"X-Elastic-Product": "Elasticsearch"}
JSON = "application/vnd.elasticsearch+json"


@dataclass
class ScriptedElasticsearch:
    """What it was asked ("METHOD path"), with which bodies, and its next answers; the last one stays."""

    url: str = ""
    answers: deque[tuple[int, Any]] = field(default_factory=deque)
    asked: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)
    hangs: bool = False
    released: asyncio.Event = field(default_factory=asyncio.Event)
    headers: dict[str, str] = field(default_factory=lambda: dict(PRODUCT))

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path}")
        self.bodies.append(await request.text())
        if self.hangs:
            await self.released.wait()
        status, body = self.answers.popleft() if len(self.answers) > 1 else self.answers[0]
        return web.json_response(body, status=status, headers=self.headers, content_type=JSON)


def error(kind: str) -> dict[str, Any]:
    """The body of a refusal; its text quotes what was sent, as a server's does."""
    return {"error": {"type": kind, "reason": f"{SECRET} cannot be"}}


def items(*outcomes: tuple[str, int, str]) -> dict[str, Any]:
    """The body of a bulk answer: operation, status and type of error of each item."""
    made = [{operation: {"status": status, **(error(kind) if kind else {})}} for operation, status, kind in outcomes]
    return {"errors": any(kind for _, _, kind in outcomes), "items": made}


@asynccontextmanager
async def scripted(
    *answers: tuple[int, Any], tls: ssl.SSLContext | None = None
) -> AsyncIterator[ScriptedElasticsearch]:
    """Serves on a free port."""
    server = ScriptedElasticsearch(answers=deque(answers))
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()
