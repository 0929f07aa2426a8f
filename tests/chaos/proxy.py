"""A TCP proxy in front of a store that makes its network bad while it runs: cut, silent, slow, half-closed, narrow.

It lives in the event loop that starts it, and costs one copy of the bytes in good weather. A silent network behaves
as TCP does over a link that loses everything: bytes are held back, not lost, and arrive late, even where their sender
has given up meanwhile. That is the nastiest form: a write that its caller has counted as failed still happens.
"""

import asyncio
import random
import socket
import struct
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import cast

from tests.servers.process import free_port

HOST = "127.0.0.1"
MOST_HELD_BYTES = 256 * 1024
"""Of one direction of one connection; above it, its sender is not read."""
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(frozen=True)
class Weather:
    """The state of a network.

    `muted`: only what the store says is held back. `bytes_per_s` 0 is no limit. `jitter_s` is the most that is added
    to `delay_s`.
    """

    refused: bool = False
    silent: bool = False
    muted: bool = False
    half_closed: bool = False
    delay_s: float = 0.0
    jitter_s: float = 0.0
    bytes_per_s: int = 0

    @property
    def is_clear(self) -> bool:
        """Whether bytes go through at once."""
        return self == CLEAR


CLEAR = Weather()


class Proxy:
    """Stands in front of one port; its own port stays the same in every weather."""

    def __init__(self, target_port: int, *, port: int = 0, seed: int = 0) -> None:
        self.target_port = target_port
        self.port = port or free_port()
        self.weather = CLEAR
        self.draw = random.Random(seed)
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> str:
        """`host:port` of the proxy."""
        return f"{HOST}:{self.port}"

    @property
    def connection_count(self) -> int:
        """How many connections stand."""
        return len(self._links)

    async def start(self) -> None:
        """Listens."""
        if self._server is None:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(lambda: _Link(self).near, HOST, self.port)

    async def close(self) -> None:
        """Resets every connection and stops listening."""
        self._stop_listening()
        self.reset()

    def reset(self) -> None:
        """Resets (RST) every connection, on both sides; new ones are taken as the weather says."""
        for link in list(self._links):
            link.abort()

    async def cut(self) -> None:
        """Resets every connection and refuses new ones."""
        await self.change(Weather(refused=True))

    async def blackhole(self) -> None:
        """Accepts, and passes nothing on either way, also on connections that stand."""
        await self.change(Weather(silent=True))

    async def mute(self) -> None:
        """What clients send arrives; what the store answers is held back."""
        await self.change(Weather(muted=True))

    async def delay(self, delay_s: float, jitter_s: float = 0.0) -> None:
        """Each piece of each direction arrives that much later; order is kept."""
        await self.change(Weather(delay_s=delay_s, jitter_s=jitter_s))

    async def half_close(self) -> None:
        """Ends the store's direction of every connection (FIN); what the client sends still arrives."""
        await self.change(Weather(half_closed=True))

    async def throttle(self, bytes_per_s: int) -> None:
        """Each direction of each connection gets so many bytes a second."""
        await self.change(Weather(bytes_per_s=bytes_per_s))

    async def heal(self) -> None:
        """Good weather: what was held back arrives; half-closed connections are reset."""
        await self.change(CLEAR)

    async def change(self, weather: Weather) -> None:
        """Puts a weather in force for the connections that stand and for new ones."""
        was_half_closed, self.weather = self.weather.half_closed, weather
        if weather.refused:
            await self.close()
            return
        if was_half_closed and not weather.half_closed:
            self.reset()
        for link in list(self._links):
            link.feel()
        await self.start()

    def join(self, link: "_Link") -> None:
        """Counts a connection in."""
        self._links.add(link)

    def leave(self, link: "_Link") -> None:
        """Counts a connection out."""
        self._links.discard(link)

    def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


class _Link:
    """One client's connection and the one to the store that belongs to it."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self.near = _End(self)
        self.far = _End(self)
        self.near.other, self.far.other = self.far, self.near
        self._connecting: asyncio.Task[None] | None = None
        self._is_refused = False

    def opened(self) -> None:
        """The client is there: the store is called."""
        self.proxy.join(self)
        self._connecting = asyncio.get_running_loop().create_task(self._connect())

    async def _connect(self) -> None:
        try:
            await asyncio.get_running_loop().create_connection(lambda: self.far, HOST, self.proxy.target_port)
        except OSError:
            self._is_refused = True
        self.feel()

    def feel(self) -> None:
        """The weather has changed, or the connection is new."""
        if self._is_refused and not self.proxy.weather.silent:
            self.abort()
            return
        if self.proxy.weather.half_closed:
            self.near.end()
        self.near.flush()
        self.far.flush()

    def close_if_ended(self) -> None:
        """Both directions are at their end."""
        if self.near.is_ended and self.far.is_ended:
            self.proxy.leave(self)
            self.near.close()
            self.far.close()

    def abort(self) -> None:
        """RST to both sides."""
        self.proxy.leave(self)
        if self._connecting is not None:
            self._connecting.cancel()
        for each in (self.near, self.far):
            each.abort()


class _End(asyncio.Protocol):
    """One side of a connection; holds what is on its way *to* it."""

    other: "_End"

    def __init__(self, link: _Link) -> None:
        self._link = link
        self._transport: asyncio.Transport | None = None
        self._held: deque[tuple[float, bytes]] = deque()
        self._held_bytes = 0
        self._due = 0.0
        self.is_ended = False
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self is self._link.near:
            self._link.opened()

    def data_received(self, data: bytes) -> None:
        self.other.take(bytes(data))

    def eof_received(self) -> bool:
        self.other.take(b"")
        return True  # the other direction may go on

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._link.proxy.weather.silent:
            self.other.take(b"")
        else:
            self._link.abort()

    def pause_writing(self) -> None:
        self.other.listen(willing=False)

    def resume_writing(self) -> None:
        self.other.listen(willing=True)

    def take(self, data: bytes) -> None:
        """Something to deliver here, now or when the weather lets it; nothing is the end of the direction."""
        if self._transport is not None and not self._held and self._link.proxy.weather.is_clear:
            self._deliver(data)
            return
        self._held.append((self._due_at(len(data)), data))
        self._held_bytes += len(data)
        if self._held_bytes > MOST_HELD_BYTES:
            self.other.listen(willing=False)
        self.flush()

    def flush(self) -> None:
        """Delivers what is due, and looks again when the next piece is."""
        weather, loop = self._link.proxy.weather, asyncio.get_running_loop()
        is_silent = weather.silent or (weather.muted and self is self._link.near)
        while self._held and self._transport is not None and not is_silent:
            due, data = self._held[0]
            if not weather.is_clear and due > loop.time():
                self._look_again(due)
                return
            self._held.popleft()
            self._held_bytes -= len(data)
            self._deliver(data)
        if self._held_bytes <= MOST_HELD_BYTES:
            self.other.listen(willing=True)

    def end(self) -> None:
        """FIN to this side; what comes for it afterwards is dropped."""
        if self._transport is not None and not self.is_ended and not self._transport.is_closing():
            self.is_ended = True
            with suppress(OSError):  # whoever was there may have hung up
                self._transport.write_eof()
            self._link.close_if_ended()

    def close(self) -> None:
        """Closes this side once everything is written."""
        if self._transport is not None:
            self._transport.close()

    def listen(self, *, willing: bool) -> None:
        """Reads from this side, or leaves what it sends in the kernel."""
        if self._transport is None or self._transport.is_closing():
            return
        if willing:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    def abort(self) -> None:
        """RST to this side."""
        if self._timer is not None:
            self._timer.cancel()
        self._held.clear()
        transport, self._transport = self._transport, None
        if transport is None or transport.is_closing():
            return
        raw = transport.get_extra_info("socket")
        with socket.socket(fileno=socket.dup(raw.fileno())) as own:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        transport.abort()

    def _deliver(self, data: bytes) -> None:
        if self.is_ended or self._transport is None or self._transport.is_closing():
            return
        if data:
            self._transport.write(data)
        else:
            self.end()

    def _due_at(self, size: int) -> float:
        weather, now = self._link.proxy.weather, asyncio.get_running_loop().time()
        due = now + weather.delay_s + self._link.proxy.draw.uniform(0, weather.jitter_s)
        if weather.bytes_per_s:
            due = max(due, self._due) + size / weather.bytes_per_s
        self._due = max(due, self._due)
        return self._due

    def _look_again(self, due: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(due, self.flush)


@asynccontextmanager
async def proxy_to(target_port: int) -> AsyncIterator[Proxy]:
    """A proxy that passes, in front of a port of this machine."""
    proxy = Proxy(target_port)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.close()
