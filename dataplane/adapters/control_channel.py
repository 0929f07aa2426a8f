"""Channels to the control plane: in clear, or with certificates that may change while one is open."""

from dataclasses import dataclass

import grpc

from memplane.rpc.certificate_watch import CertificateWatch
from memplane.rpc.certificates import BadCertificate, TlsMaterial
from memplane.rpc.tls import channel_credentials, server_name_options

OPTIONS = (
    # Channels of one process to one address would share connections, and with them their back-off.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
    ("grpc.enable_retries", 0),
)


@dataclass(frozen=True, slots=True)
class ControlTls:
    """What the channel trusts and shows, followed by somebody else, and the name wanted ("": the address's host)."""

    watch: CertificateWatch
    server_name: str = ""


class ControlChannel:
    """Makes one channel after the other to `address`. `tls` None: in clear."""

    def __init__(self, address: str, tls: ControlTls | None):
        self._address = address
        self._tls = tls
        self._made_of = TlsMaterial()

    def open(self) -> grpc.aio.Channel:
        """A new channel. Raises BadCertificate while there are no files that can be used."""
        if self._tls is None:
            return grpc.aio.insecure_channel(self._address, options=OPTIONS)
        self._made_of = self._tls.watch.material
        if not self._made_of.authorities_pem:
            raise BadCertificate(self._tls.watch.problem or "certificate files have not been read yet")
        options = (*OPTIONS, *server_name_options(self._tls.server_name))
        return grpc.aio.secure_channel(self._address, channel_credentials(self._made_of), options)

    @property
    def is_outdated(self) -> bool:
        """Whether the newest channel was made of files that have been replaced."""
        return self._tls is not None and self._tls.watch.material is not self._made_of
