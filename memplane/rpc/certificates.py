"""Certificates as files hold them: read, checked before anybody uses them, and told about. Opens no connection.

What is taken must work: a certificate that fits its key and is valid now, and authorities of which at least one is. A
file that is half written, or a pair of which only one half has been replaced yet, is a BadCertificate like any other:
whoever watches keeps what was in use and looks again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

MAX_FILE_BYTES: Final = 1024 * 1024
"""Largest certificate, key or bundle: the public authorities of an operating system are 0.2 MiB."""

MAX_TOLD_AUTHORITIES: Final = 5
"""Of a bundle, those that end first are told of."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"


class BadCertificate(Exception):
    """Files from which no connection can be made; the text names the file and what is wrong."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where they lie, PEM each. `certificate` (its chain behind it) and `key` go together; None: there is none."""

    certificate: Path | None = None
    key: Path | None = None
    authorities: Path | None = None


@dataclass(frozen=True, slots=True)
class TlsMaterial:
    """What the files held at one moment; empty: there is none."""

    certificate_pem: bytes = b""
    key_pem: bytes = field(default=b"", repr=False)
    authorities_pem: bytes = b""


@dataclass(frozen=True, slots=True)
class CertificateFact:
    """One certificate, for people. `purpose` is `server`, `client` or `ca`; a chain ends with its first to end."""

    purpose: str
    subject: str
    expire_time_us: int


def read_files(files: TlsFiles) -> TlsMaterial:
    """What the files hold, unchecked. Blocking. Raises BadCertificate where one cannot be read."""
    return TlsMaterial(*(_read(path) for path in (files.certificate, files.key, files.authorities)))


def check(files: TlsFiles, material: TlsMaterial, purpose: str, now_us: int) -> tuple[CertificateFact, ...]:
    """The facts of what the files held, its own certificate first. `purpose` is of that: `server` or `client`.

    Raises:
        BadCertificate: It cannot be used at `now_us`.
    """
    facts: list[CertificateFact] = []
    if files.certificate is not None and files.key is not None:
        chain = _certificates(files.certificate, material.certificate_pem)
        _check_pair(files, chain[0], _private_key(files.key, material.key_pem))
        for each in chain:
            _check_valid(files.certificate, each, now_us)
        facts.append(_fact(purpose, chain))
    if files.authorities is not None:
        facts += _authorities(files.authorities, material.authorities_pem, now_us)
    return tuple(facts)


def _read(path: Path | None) -> bytes:
    if path is None:
        return b""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BadCertificate(f"{path}: {error.strerror or type(error).__name__}") from error
    if len(content) > MAX_FILE_BYTES:
        raise BadCertificate(f"{path}: is larger than {MAX_FILE_BYTES // 1024} KiB")
    return content


def _certificates(path: Path, pem: bytes) -> list[x509.Certificate]:
    try:
        found = x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise BadCertificate(f"{path}: holds no certificate in PEM, or half of one") from error
    if len(found) != pem.count(_BEGIN):
        raise BadCertificate(
            f"{path}: is cut off: {pem.count(_BEGIN)} certificates begin in it, {len(found)} are whole"
        )
    return found


def _private_key(path: Path, pem: bytes) -> PrivateKeyTypes:
    try:
        return load_pem_private_key(pem, password=None)
    except TypeError as error:
        raise BadCertificate(f"{path}: the key is encrypted; give it without a passphrase") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadCertificate(f"{path}: holds no private key in PEM, or half of one") from error


def _check_pair(files: TlsFiles, certificate: x509.Certificate, key: PrivateKeyTypes) -> None:
    shape = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    try:
        certified = certificate.public_key().public_bytes(*shape)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadCertificate(f"{files.certificate}: the kind of its key is not known") from error
    if certified != key.public_key().public_bytes(*shape):
        raise BadCertificate(f"{files.certificate}: the certificate does not fit the key in {files.key}")


def _check_valid(path: Path, certificate: x509.Certificate, now_us: int) -> None:
    subject = _name(certificate)
    if now_us >= _end_us(certificate):
        raise BadCertificate(f"{path}: {subject} expired at {certificate.not_valid_after_utc.isoformat()}")
    if now_us < _us(certificate.not_valid_before_utc):
        begin = certificate.not_valid_before_utc.isoformat()
        raise BadCertificate(f"{path}: {subject} is not valid before {begin}; is this machine's clock right?")


def _authorities(path: Path, pem: bytes, now_us: int) -> list[CertificateFact]:
    """Of a bundle, an expired one beside others does no harm."""
    bundle = _certificates(path, pem)
    valid = [each for each in bundle if _us(each.not_valid_before_utc) <= now_us < _end_us(each)]
    if not valid:
        _check_valid(path, bundle[0], now_us)
    told = sorted(valid, key=_end_us)[:MAX_TOLD_AUTHORITIES]
    return [_fact("ca", (each,)) for each in told]


def _fact(purpose: str, chain: Sequence[x509.Certificate]) -> CertificateFact:
    return CertificateFact(purpose, _name(chain[0]), min(_end_us(each) for each in chain))


def _name(certificate: x509.Certificate) -> str:
    """The subject; SPIFFE certificates often have none but in their alternative names."""
    if certificate.subject.rdns:
        return certificate.subject.rfc4514_string()
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return f"serial number {certificate.serial_number:x}"
    return ", ".join(str(name.value) for name in names)


def _end_us(certificate: x509.Certificate) -> int:
    return _us(certificate.not_valid_after_utc)


def _us(time: datetime) -> int:
    return (time - _EPOCH) // timedelta(microseconds=1)
