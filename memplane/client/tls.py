"""How clients speak TLS: whom they trust, what they show, and a channel that follows the files of both."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc

from memplane.process import SystemClock
from memplane.rpc.certificate_watch import CertificateWatch
from memplane.rpc.certificates import TlsFiles, check, read_files
from memplane.rpc.tls import channel_credentials, server_name_options

POLL_S: Final = 1.0
"""Least time between two looks at the files. Unmeasured."""

Options = tuple[tuple[str, int | str], ...]


@dataclass(frozen=True, slots=True)
class ClientTls:
    """Files in PEM, read again when they change: long-lived clients follow short-lived certificates.

    Attributes:
        ca_file: The authorities that are trusted to sign servers' certificates, and no others.
        cert_file: The certificate to show, its chain behind it, where the server wants one.
        key_file: Its private key, without a passphrase.
        server_name: The name in the server's certificate; empty: the host of the target.
    """

    ca_file: Path | str
    cert_file: Path | str | None = None
    key_file: Path | str | None = None
    server_name: str = ""

    def __post_init__(self) -> None:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file goes with key_file; give both, or neither")

    @property
    def files(self) -> TlsFiles:
        """The files, by their roles."""
        certificate, key = (None if each is None else Path(each) for each in (self.cert_file, self.key_file))
        return TlsFiles(certificate, key, Path(self.ca_file))


def blocking_channel(target: str, tls: ClientTls | None) -> grpc.Channel:
    """A channel for blocking calls, made once of the files as they are; in clear without `tls`.

    Raises BadCertificate.
    """
    if tls is None:
        return grpc.insecure_channel(target)
    material = read_files(tls.files)
    check(tls.files, material, "client", SystemClock().now_us())
    return grpc.secure_channel(target, channel_credentials(material), server_name_options(tls.server_name))


def async_channel(target: str, tls: ClientTls | None, options: Options = ()) -> grpc.aio.Channel:
    """A channel, in clear without `tls`; with it a FollowingChannel. Raises BadCertificate."""
    return FollowingChannel(target, tls, options) if tls else grpc.aio.insecure_channel(target, options=options)


class _Made:
    """A channel with the calls that are under way on it; closed when it is given up and the last has ended."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel
        self._underway = 0
        self._closing: asyncio.Task[None] | None = None
        self._given_up = False

    def begin(self, call: Any) -> Any:
        """Notes a call of this channel."""
        self._underway += 1
        call.add_done_callback(self._end)
        return call

    def give_up(self) -> None:
        """Takes no new calls."""
        self._given_up = True
        self._close_when_idle()

    @property
    def is_closed(self) -> bool:
        """Whether it was given up and is closed."""
        return self._closing is not None and self._closing.done()

    def _end(self, _call: Any) -> None:
        self._underway -= 1
        self._close_when_idle()

    def _close_when_idle(self) -> None:
        if self._given_up and not self._underway and self._closing is None:
            self._closing = asyncio.ensure_future(self.channel.close())


class FollowingChannel(grpc.aio.Channel):
    """A channel that is made anew, under the stubs that use it, when the files of its certificates have changed.

    gRPC keeps what a channel was made with. `follow` looks at the files, at most every `poll_s`; calls that begin after
    it take a channel with the new files, calls under way end where they began.
    """

    def __init__(self, target: str, tls: ClientTls, options: Options = (), poll_s: float = POLL_S) -> None:
        """Raises BadCertificate."""
        self._poll_s = poll_s
        self._target = target
        self._options = (*options, *server_name_options(tls.server_name), ("grpc.use_local_subchannel_pool", 1))
        self._watch = CertificateWatch(tls.files, "client", SystemClock())
        self._watch.load()
        self._looking = asyncio.Lock()
        self._looked_s = float("-inf")
        self._material = self._watch.material
        self._made = self._make()
        self._before: list[_Made] = []

    async def follow(self) -> None:
        """Takes new files; those that cannot be used are told in the log, and the ones before stay."""
        if self._is_due():
            async with self._looking:
                if self._is_due():
                    await self._look()

    def _is_due(self) -> bool:
        return asyncio.get_running_loop().time() - self._looked_s >= self._poll_s

    async def _look(self) -> None:
        await self._watch.look()
        self._looked_s = asyncio.get_running_loop().time()
        if self._watch.material is not self._material:
            self._before = [each for each in (*self._before, self._made) if not each.is_closed]
            self._material = self._watch.material
            self._made = self._make()
            self._before[-1].give_up()

    def _make(self) -> _Made:
        credentials = channel_credentials(self._material)
        return _Made(grpc.aio.secure_channel(self._target, credentials, self._options))

    def _following(self, shape: str, parts: tuple[Any, ...], named: dict[str, Any]) -> Any:
        def begin(*arguments: Any, **settings: Any) -> Any:
            made = self._made
            return made.begin(getattr(made.channel, shape)(*parts, **named)(*arguments, **settings))

        return begin

    def unary_unary(self, *parts: Any, **named: Any) -> Any:
        """As of a channel; each call takes the newest."""
        return self._following("unary_unary", parts, named)

    def unary_stream(self, *parts: Any, **named: Any) -> Any:
        """As above."""
        return self._following("unary_stream", parts, named)

    def stream_unary(self, *parts: Any, **named: Any) -> Any:
        """As above."""
        return self._following("stream_unary", parts, named)

    def stream_stream(self, *parts: Any, **named: Any) -> Any:
        """As above."""
        return self._following("stream_stream", parts, named)

    async def __aenter__(self) -> "FollowingChannel":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self, grace: float | None = None) -> None:
        """Closes the newest channel and those before it that still have calls."""
        for made in (*self._before, self._made):
            await made.channel.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """Of the newest channel."""
        return self._made.channel.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Of the newest channel."""
        await self._made.channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Of the newest channel."""
        await self._made.channel.channel_ready()
