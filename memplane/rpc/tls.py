"""TLS of gRPC: a server whose certificate and authorities can change under load, channels, and who the peer is.

gRPC speaks TLS 1.2 and 1.3, nothing older. A server asks `CertificateWatch` before each handshake, so that new
connections use new files and those that are open go on. A channel keeps what it was made with: it is made anew.
"""

import logging
from collections.abc import Callable
from typing import Any, Final, cast

import grpc

from memplane.rpc.certificate_watch import CertificateWatch, Clock
from memplane.rpc.certificates import TlsMaterial
from memplane.rpc.server import bind
from memplane.rpc.tls_settings import ServerTls, is_loopback

log = logging.getLogger("memplane.rpc.tls")

SPIFFE_SCHEME: Final = "spiffe://"
MAX_SPIFFE_ID_BYTES: Final = 2048
"""The standard's (SPIFFE-ID, section 2.3)."""

_Fetch = Callable[[], grpc.ServerCertificateConfiguration]
"""What its published types want; None is allowed too and means: the same as before."""

_TRUST_DOMAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-_")
_SEGMENT: Final = _TRUST_DOMAIN | frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def bind_with(
    server: grpc.aio.Server, address: str, tls: ServerTls | None, clock: Clock
) -> tuple[int, CertificateWatch | None]:
    """Binds `host:port`; the port, and the watch that its certificate follows once somebody runs it. Blocking.

    A second port, which `tls` may ask for, is bound as well.

    Raises AddressInUse, or BadCertificate where the files cannot be used.
    """
    if tls is None:
        if not is_loopback(address):
            log.warning("%s takes calls of other machines IN CLEAR: everybody on the way reads API keys", address)
        return bind(server, address), None
    watch = CertificateWatch(tls.files, "server", clock)
    watch.load()
    port = bind(server, address, server_credentials(watch, require_client=tls.require_client))
    if tls.mtls_listen:
        second = bind(server, tls.mtls_listen, server_credentials(watch, require_client=True))
        log.info("clients with certificates are served on %s:%d", tls.mtls_listen.rpartition(":")[0], second)
    return port, watch


def server_credentials(watch: CertificateWatch, *, require_client: bool) -> grpc.ServerCredentials:
    """Credentials for one port, which follow `watch`.

    With `require_client` every client must show a certificate that an authority of the watch's files has signed; a
    handshake without one fails. Python's gRPC has nothing between: without it, clients are not asked for any.
    """
    handed = watch.material

    def fetch() -> grpc.ServerCertificateConfiguration | None:
        """Called by gRPC's own threads, one handshake after the other."""
        nonlocal handed
        newest = watch.material
        if newest is handed:
            return None
        handed = newest
        return _configuration(newest)

    return grpc.dynamic_ssl_server_credentials(_configuration(handed), cast("_Fetch", fetch), require_client)


def _configuration(material: TlsMaterial) -> grpc.ServerCertificateConfiguration:
    pairs = [(material.key_pem, material.certificate_pem)]
    return grpc.ssl_server_certificate_configuration(pairs, material.authorities_pem or None)


def channel_credentials(material: TlsMaterial) -> grpc.ChannelCredentials:
    """Credentials that trust the material's authorities and no others, and show its certificate if it has one."""
    return grpc.ssl_channel_credentials(
        material.authorities_pem, material.key_pem or None, material.certificate_pem or None
    )


def server_name_options(server_name: str) -> tuple[tuple[str, str], ...]:
    """Channel options with which the certificate must be for `server_name`; "": for the host of the target."""
    return (("grpc.ssl_target_name_override", server_name),) if server_name else ()


def peer_spiffe_ids(context: grpc.aio.ServicerContext[Any, Any]) -> tuple[str, ...]:
    """The SPIFFE id of the certificate that the peer has proved to hold, or nothing.

    gRPC gives the URI names under `peer_uri` (`x509_subject_alternative_name` has DNS names among them, in which any
    text can stand). Empty without TLS, where no certificate was asked for, and for one that is no X.509-SVID: that has
    exactly one URI (X509-SVID standard, section 2), a well-formed id.
    """
    uris = tuple(context.auth_context().get("peer_uri", ()))
    if len(uris) != 1:
        return ()
    found = uris[0].decode("utf-8", "replace")
    return (found,) if _is_spiffe_id(found) else ()


def _is_spiffe_id(uri: str) -> bool:
    """Whether it is one with a trust domain in lower case and without query, fragment, port or user (SPIFFE-ID, 2)."""
    if not uri.startswith(SPIFFE_SCHEME) or not uri.isascii() or len(uri) > MAX_SPIFFE_ID_BYTES:
        return False
    trust_domain, _, path = uri.removeprefix(SPIFFE_SCHEME).partition("/")
    segments = path.split("/") if "/" in uri.removeprefix(SPIFFE_SCHEME) else []
    plain = all(segment not in ("", ".", "..") and _SEGMENT.issuperset(segment) for segment in segments)
    return bool(trust_domain) and _TRUST_DOMAIN.issuperset(trust_domain) and plain
