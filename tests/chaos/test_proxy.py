"""What the proxy does to real sockets in each weather."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import pytest

from tests.chaos.proxy import HOST, Proxy, proxy_to
from tests.deadline import eventually
from tests.servers.process import free_port

SHORT_S = 0.15


class Echo:
    """A store that answers each line with itself and keeps all it was told."""

    def __init__(self) -> None:
        self.heard = b""
        self.serving: set[asyncio.Task[None]] = set()

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self.serve(reader, writer))
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                self.heard += line
                writer.write(line)
        except ConnectionError:
            pass
        finally:
            writer.close()


@pytest.fixture
async def echo() -> AsyncIterator[tuple[Echo, Proxy]]:
    store, port = Echo(), free_port()
    server = await asyncio.start_server(store.accept, HOST, port)
    async with proxy_to(port) as proxy:
        yield store, proxy
    server.close()
    await asyncio.gather(*store.serving)


Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[Proxy], Awaitable[Pair]]


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    made: list[Pair] = []

    async def call(proxy: Proxy) -> Pair:
        made.append(await asyncio.open_connection(HOST, proxy.port))
        return made[-1]

    yield call
    for _, writer in made:
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


async def ask(pair: Pair, line: bytes = b"hello\n", within_s: float = 5.0) -> bytes:
    pair[1].write(line)
    return await asyncio.wait_for(pair[0].readline(), within_s)


async def test_passes_both_ways_and_closes_with_its_client(echo: tuple[Echo, Proxy], connect: Connect) -> None:
    _, proxy = echo
    pair = await connect(proxy)
    assert await ask(pair) == b"hello\n"
    assert proxy.connection_count == 1
    pair[1].close()
    await eventually(lambda: proxy.connection_count, lambda count: count == 0)


async def test_cut_resets_standing_connections_and_refuses_new_ones_until_healed(
    echo: tuple[Echo, Proxy], connect: Connect
) -> None:
    _, proxy = echo
    pair = await connect(proxy)
    await ask(pair)
    await proxy.cut()
    with pytest.raises(ConnectionResetError):
        await asyncio.wait_for(pair[0].readline(), 5)
    with pytest.raises(ConnectionRefusedError):
        await connect(proxy)
    await proxy.heal()
    assert await ask(await connect(proxy)) == b"hello\n"


async def test_a_blackhole_accepts_and_answers_nothing(echo: tuple[Echo, Proxy], connect: Connect) -> None:
    store, proxy = echo
    pair = await connect(proxy)
    await ask(pair)
    await proxy.blackhole()
    for each in (pair, await connect(proxy)):
        with pytest.raises(TimeoutError):
            await ask(each, b"unheard\n", SHORT_S)
    assert store.heard == b"hello\n"


async def test_what_was_sent_into_a_blackhole_arrives_late_though_its_sender_left(
    echo: tuple[Echo, Proxy], connect: Connect
) -> None:
    store, proxy = echo
    pair = await connect(proxy)
    await ask(pair)
    await proxy.blackhole()
    pair[1].write(b"late\n")
    await pair[1].drain()
    pair[1].close()
    await pair[1].wait_closed()
    await asyncio.sleep(SHORT_S)
    await proxy.heal()
    await eventually(lambda: store.heard, lambda heard: heard == b"hello\nlate\n")
    await eventually(lambda: proxy.connection_count, lambda count: count == 0)


async def test_a_mute_store_hears_at_once_and_is_heard_when_healed(echo: tuple[Echo, Proxy], connect: Connect) -> None:
    store, proxy = echo
    pair = await connect(proxy)
    await ask(pair)
    await proxy.mute()
    with pytest.raises(TimeoutError):
        await ask(pair, b"heard\n", SHORT_S)
    assert store.heard == b"hello\nheard\n"
    await proxy.heal()
    assert await asyncio.wait_for(pair[0].readline(), 5) == b"heard\n"


async def test_a_delay_holds_each_direction_and_keeps_the_order(echo: tuple[Echo, Proxy], connect: Connect) -> None:
    _, proxy = echo
    pair = await connect(proxy)
    await proxy.delay(SHORT_S, SHORT_S)
    started = asyncio.get_running_loop().time()
    assert await ask(pair, b"one\n") == b"one\n"
    assert asyncio.get_running_loop().time() - started >= 2 * SHORT_S
    for line in (b"two\n", b"three\n"):
        pair[1].write(line)
    assert [await pair[0].readline(), await pair[0].readline()] == [b"two\n", b"three\n"]


async def test_a_half_closed_store_hears_and_does_not_answer(echo: tuple[Echo, Proxy], connect: Connect) -> None:
    store, proxy = echo
    pair = await connect(proxy)
    await ask(pair)
    await proxy.half_close()
    assert await asyncio.wait_for(pair[0].read(), 5) == b""
    pair[1].write(b"heard\n")
    await eventually(lambda: store.heard, lambda heard: heard == b"hello\nheard\n")
    await proxy.heal()
    await eventually(lambda: proxy.connection_count, lambda count: count == 0)
    assert await ask(await connect(proxy)) == b"hello\n"


async def test_a_throttle_lets_so_many_bytes_through_a_second(echo: tuple[Echo, Proxy], connect: Connect) -> None:
    _, proxy = echo
    pair = await connect(proxy)
    await proxy.throttle(20_000)
    started = asyncio.get_running_loop().time()
    await ask(pair, b"x" * 2_000 + b"\n")
    assert asyncio.get_running_loop().time() - started >= 2 * 2_000 / 20_000 * 0.9


async def test_a_store_that_is_gone_is_a_reset_for_the_client(connect: Connect) -> None:
    async with proxy_to(free_port()) as proxy:
        reader, _ = await connect(proxy)
        with pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(), 5)


async def test_more_than_fits_is_left_with_its_sender_and_arrives_whole(
    echo: tuple[Echo, Proxy], connect: Connect
) -> None:
    store, proxy = echo
    pair = await connect(proxy)
    await ask(pair)
    await proxy.blackhole()
    line = b"y" * 50_000 + b"\n"
    sending = asyncio.create_task(_send(pair[1], line, 100))
    await asyncio.sleep(SHORT_S)
    await proxy.heal()
    received = [await asyncio.wait_for(pair[0].readline(), 5) for _ in range(100)]
    await sending
    assert received == [line] * 100
    assert len(store.heard) == len(b"hello\n") + 100 * len(line)


async def _send(writer: asyncio.StreamWriter, line: bytes, count: int) -> None:
    for _ in range(count):
        writer.write(line)
        await writer.drain()
