"""The settings of TLS that both planes have, and the refusal to speak in clear beyond this machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from memplane.rpc.certificates import TlsFiles
from memplane.settings import BadConfig, Setting, Settings

CLIENT_AUTH: Final = ("none", "require")
"""What Python's gRPC offers: not to ask clients for a certificate, or to let nobody in without one."""

SERVER_SETTINGS: Final = (
    Setting("tls-cert-file", "", "certificate of this server, its chain behind it (PEM); empty: no TLS"),
    Setting("tls-key-file", "", "private key of that certificate (PEM, without a passphrase)"),
    Setting("tls-client-ca-file", "", "authorities that sign clients' certificates (PEM)"),
    Setting("tls-client-auth", "none", "require: only clients with a certificate of those authorities; or none"),
    Setting("mtls-listen", "none", "second address, HOST:PORT, on which clients must show such a certificate; or none"),
    Setting("insecure", "off", "on: speak in clear also beyond this machine; for networks that are trusted themselves"),
)


@dataclass(frozen=True, slots=True)
class ServerTls:
    """How a plane's port speaks TLS, and perhaps a second one, at `mtls_listen`, to clients with certificates.

    With `require_client` or a second port the files have authorities.
    """

    files: TlsFiles
    require_client: bool
    mtls_listen: str = ""

    @classmethod
    def of(cls, given: Settings) -> "ServerTls | None":
        """From SERVER_SETTINGS; None: in clear. Raises BadConfig where they do not go together."""
        files = _files(given, ("tls-cert-file", "tls-key-file", "tls-client-ca-file"))
        require_client = given.choice("tls-client-auth", CLIENT_AUTH) == "require"
        mtls_listen = given.optional_address("mtls-listen")
        asks = require_client or bool(mtls_listen)
        if files.certificate is None:
            if files.authorities is not None or asks:
                raise BadConfig("tls-cert-file: is required with tls-client-ca-file, tls-client-auth and mtls-listen")
            return None
        if asks != (files.authorities is not None):
            raise BadConfig(
                "tls-client-ca-file: goes with tls-client-auth require or mtls-listen; give both, or neither"
            )
        return cls(files, require_client, mtls_listen)


@dataclass(frozen=True, slots=True)
class ChannelTls:
    """How a client speaks TLS: whom it trusts, what it shows, and whose certificate it wants ("": the target's)."""

    files: TlsFiles
    server_name: str = ""

    @classmethod
    def of(cls, given: Settings, prefix: str) -> "ChannelTls | None":
        """From `channel_settings`; None: in clear. Raises BadConfig where they do not go together."""
        files = _files(given, tuple(f"{prefix}-tls-{each}-file" for each in ("cert", "key", "ca")))
        server_name = given.text(f"{prefix}-tls-server-name")
        if files.authorities is None:
            if files.certificate is not None or server_name:
                raise BadConfig(f"{prefix}-tls-ca-file: is required with the other settings of {prefix}-tls")
            return None
        return cls(files, server_name)


def channel_settings(prefix: str, peer: str) -> tuple[Setting, ...]:
    """The settings of a channel to `peer`, their names beginning with `prefix`."""
    return (
        Setting(f"{prefix}-tls-ca-file", "", f"authorities that sign the certificate of {peer} (PEM); empty: no TLS"),
        Setting(f"{prefix}-tls-cert-file", "", f"certificate to show to {peer}, its chain behind it (PEM)"),
        Setting(f"{prefix}-tls-key-file", "", "private key of that certificate (PEM, without a passphrase)"),
        Setting(f"{prefix}-tls-server-name", "", f"name in the certificate of {peer}; empty: the host it is called by"),
    )


def refuse_clear(given: Settings, name: str, tls: ServerTls | ChannelTls | None) -> None:
    """Raises BadConfig when the address of setting `name` is beyond this machine, without TLS and `insecure`."""
    insecure = given.choice("insecure", ("off", "on")) == "on"
    address = given.address(name)
    if tls is None and not insecure and not is_loopback(address):
        raise BadConfig(
            f"{name}: {address} is beyond this machine, and there is no TLS: API keys and memories would travel in "
            "clear. Give certificates (tls-cert-file and the others), or insecure on where the network is trusted"
        )


def is_loopback(address: str) -> bool:
    """Whether `HOST:PORT` is reached from this machine alone."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _files(given: Settings, names: Sequence[str]) -> TlsFiles:
    certificate, key, authorities = (given.path(name) for name in names)
    if (certificate is None) != (key is None):
        raise BadConfig(f"{names[0]}: goes with {names[1]}; give both, or neither")
    return TlsFiles(certificate, key, authorities)
