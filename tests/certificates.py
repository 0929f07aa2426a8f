"""Authorities and certificates for tests: EC keys, made in a millisecond."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)
LOCAL = (x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1")))


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """Signs certificates."""

    def __init__(self, name: str = "authority", begin: timedelta = -DAY, end: timedelta = 10 * DAY) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        builder = _builder(self._name, self._name, self._key, (begin, end))
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        self._certificate = builder.add_extension(constraints, critical=True).sign(self._key, hashes.SHA256())
        self.pem = self._certificate.public_bytes(Encoding.PEM)

    def sign(
        self,
        name: str = "plane",
        names: Sequence[x509.GeneralName] = LOCAL,
        begin: timedelta = -DAY,
        end: timedelta = 2 * DAY,
    ) -> Pair:
        """A new certificate for `names`, valid from now + `begin` to now + `end`."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(name), self._name, key, (begin, end))
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        signed = builder.sign(self._key, hashes.SHA256())
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return Pair(signed.public_bytes(Encoding.PEM), pem)

    def agent(self, *uris: str, name: str = "agent") -> Pair:
        """A client's certificate with these URIs."""
        return self.sign(name, [x509.UniformResourceIdentifier(uri) for uri in uris])


def write_pair(folder: Path, pair: Pair, name: str = "tls") -> tuple[Path, Path]:
    """Writes `NAME.crt` and `NAME.key`, one after the other as a tool does; the two paths."""
    folder.mkdir(parents=True, exist_ok=True)
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    return certificate, key


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, valid: tuple[timedelta, timedelta]
) -> x509.CertificateBuilder:
    now = datetime.now(UTC).replace(microsecond=0)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + valid[0])
        .not_valid_after(now + valid[1])
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)] if text else [])
