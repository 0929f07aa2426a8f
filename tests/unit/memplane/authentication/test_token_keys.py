import asyncio
import logging
import socket
import ssl
from pathlib import Path

import pytest
from aiohttp import web

from memplane.authentication.key_sources import KeyFile, KeyUrl, SourceFailed
from memplane.authentication.token_keys import LOOK_AGAIN_S, TokenKeys
from tests.certificates import Authority, write_pair
from tests.tokens import Issuer, key_set

OLD = Issuer("old")
NEW = Issuer("new")


class Source:
    poll_s = 0.01

    def __init__(self) -> None:
        self.data = key_set(OLD)
        self.problem: Exception | None = None
        self.reads = 0

    async def read(self) -> bytes | None:
        self.reads += 1
        await asyncio.sleep(0)
        if self.problem is not None:
            raise self.problem
        return self.data


class Ticks:
    def __init__(self) -> None:
        self.s = 100.0

    def __call__(self) -> float:
        return self.s


async def test_the_old_keys_stay_while_the_source_is_down_and_it_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    source = Source()
    keys = TokenKeys(source, Ticks())
    await keys.look()
    assert keys.problem == ""
    caplog.set_level(logging.WARNING)
    for problem in (SourceFailed("down"), SourceFailed("down"), ValueError("a defect")):
        source.problem = problem
        await keys.look()
        assert keys.current is not None
        assert keys.current.has("old")
    assert keys.problem == "ValueError: a defect"
    assert len(caplog.records) == 2
    source.problem, source.data = None, b"no key set"
    await keys.look()
    assert keys.problem == "this is no JSON"
    source.data = key_set(NEW)
    await keys.look()
    assert keys.problem == ""
    assert not keys.current.has("old")


async def test_an_unknown_key_is_looked_for_at_once_but_not_for_every_token() -> None:
    source, now_s = Source(), Ticks()
    keys = TokenKeys(source, now_s)
    await keys.look()
    source.data = key_set(OLD, NEW)
    await asyncio.gather(*(keys.look_for("new") for _ in range(100)))
    assert keys.current is not None
    assert keys.current.has("new")
    assert source.reads == 2
    for number in range(100):
        await keys.look_for(f"garbage-{number}")
    assert source.reads == 2
    now_s.s += LOOK_AGAIN_S
    await keys.look_for("garbage")
    assert source.reads == 3
    await keys.look_for("old")
    await keys.look_for("")
    assert source.reads == 3


async def test_a_caller_that_goes_away_does_not_stop_the_look_for_others() -> None:
    source = Source()
    keys = TokenKeys(source, Ticks())
    first, second = (asyncio.create_task(keys.look()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert keys.current is not None
    assert source.reads == 1


async def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    source = KeyFile(path)
    with pytest.raises(SourceFailed, match="No such file"):
        await source.read()
    path.write_bytes(key_set(OLD))
    assert await source.read() == key_set(OLD)
    assert await source.read() is None
    fresh = tmp_path / "new.json"
    fresh.write_bytes(key_set(NEW))
    fresh.replace(path)
    assert await source.read() == key_set(NEW)
    path.unlink()
    with pytest.raises(SourceFailed):
        await source.read()
    path.write_bytes(key_set(NEW))
    assert await source.read() == key_set(NEW)


async def serve(  # type: ignore[type-arg]  # any handler
    handler: web.RequestHandler, pair: tuple[Path, Path] | None = None
) -> tuple[web.AppRunner, str]:
    app = web.Application()
    app.router.add_get("/jwks", handler)  # type: ignore[arg-type]  # as above
    runner = web.AppRunner(app)
    await runner.setup()
    context = None
    if pair is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*pair)
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    return runner, f"http{'s' if pair else ''}://127.0.0.1:{runner.addresses[0][1]}/jwks"


async def test_a_url_is_read_and_its_failures_are_told() -> None:
    answers = [
        web.Response(body=key_set(OLD)),
        web.Response(status=500),
        web.Response(status=302, headers={"location": "http://elsewhere.example/"}),
        web.Response(body=b"x" * 1_100_000),
    ]

    async def handler(_request: web.Request) -> web.Response:
        return answers.pop(0)

    runner, url = await serve(handler)  # type: ignore[arg-type]
    source = KeyUrl(url, 300.0)
    assert await source.read() == key_set(OLD)
    for told in ("answered 500", "answered 302", "more than 1048576 bytes"):
        with pytest.raises(SourceFailed, match=told):
            await source.read()
    await runner.cleanup()
    with pytest.raises(SourceFailed, match="ConnectError"):
        await source.read()


async def test_a_server_of_keys_is_believed_by_its_authority_alone(tmp_path: Path) -> None:
    async def handler(_request: web.Request) -> web.Response:
        return web.Response(body=key_set(OLD))

    ours, others = tmp_path / "ours.pem", tmp_path / "others.pem"
    authority = Authority()
    await asyncio.to_thread(ours.write_bytes, authority.pem)
    await asyncio.to_thread(others.write_bytes, Authority().pem)
    runner, url = await serve(handler, write_pair(tmp_path, authority.sign()))  # type: ignore[arg-type]
    assert await KeyUrl(url, 300.0, ours).read() == key_set(OLD)
    for refused in (others, tmp_path / "missing.pem", None):
        with pytest.raises(SourceFailed):
            await KeyUrl(url, 300.0, refused).read()
    await runner.cleanup()


async def test_a_server_that_accepts_and_never_answers_fails_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memplane.authentication.key_sources.FETCH_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(SourceFailed, match=r"no answer|Timeout"):
        await KeyUrl(f"http://127.0.0.1:{server.getsockname()[1]}/jwks", 300.0).read()
