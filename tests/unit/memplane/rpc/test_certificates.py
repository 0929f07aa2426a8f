from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from memplane.process import SystemClock
from memplane.rpc.certificates import (
    MAX_FILE_BYTES,
    MAX_TOLD_AUTHORITIES,
    BadCertificate,
    CertificateFact,
    TlsFiles,
    TlsMaterial,
    check,
    read_files,
)
from tests.certificates import DAY, Authority, Pair

AUTHORITY = Authority("first")
GOOD = AUTHORITY.sign("plane.example")
FILES = TlsFiles(Path("tls.crt"), Path("tls.key"), Path("ca.crt"))
NOW_US = SystemClock().now_us()
DAY_US = DAY // timedelta(microseconds=1)


def facts_of(pair: Pair = GOOD, authorities: bytes = AUTHORITY.pem) -> tuple[CertificateFact, ...]:
    return check(FILES, TlsMaterial(pair.certificate, pair.key, authorities), "server", NOW_US)


def test_a_pair_and_its_authorities_are_told_with_their_ends() -> None:
    own, authority = facts_of()
    assert (own.purpose, own.subject) == ("server", "CN=plane.example")
    assert (authority.purpose, authority.subject) == ("ca", "CN=first")
    assert abs(own.expire_time_us - NOW_US - 2 * DAY_US) < DAY_US / 24
    assert abs(authority.expire_time_us - NOW_US - 10 * DAY_US) < DAY_US / 24


def test_a_chain_ends_with_its_first_certificate_to_end() -> None:
    soon = AUTHORITY.sign("intermediate", end=DAY)
    (own, _) = facts_of(Pair(GOOD.certificate + soon.certificate, GOOD.key))
    assert (own.subject, abs(own.expire_time_us - NOW_US - DAY_US) < DAY_US / 24) == ("CN=plane.example", True)


def test_what_has_no_subject_is_told_by_its_other_names() -> None:
    uri = x509.UniformResourceIdentifier("spiffe://corp.example/plane")
    assert facts_of(AUTHORITY.sign("", [uri]))[0].subject == "spiffe://corp.example/plane"
    assert facts_of(AUTHORITY.sign("", []))[0].subject.startswith("serial number ")


def test_of_a_bundle_the_expired_do_no_harm_and_the_first_to_end_are_told() -> None:
    expired = Authority("old", begin=-2 * DAY, end=-DAY)
    many = [Authority(f"ca-{days}", end=days * DAY) for days in range(9, 2, -1)]
    told = facts_of(authorities=b"".join(each.pem for each in (expired, *many)))[1:]
    assert [each.subject for each in told] == [f"CN=ca-{days}" for days in range(3, 3 + MAX_TOLD_AUTHORITIES)]


def encrypted_key() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word"))


@pytest.mark.parametrize(
    ("pair", "authorities", "says"),
    [
        (Pair(GOOD.certificate, AUTHORITY.sign().key), AUTHORITY.pem, "tls.crt: the certificate does not fit the key"),
        (AUTHORITY.sign("late", begin=-2 * DAY, end=-DAY), AUTHORITY.pem, "tls.crt: CN=late expired at 20"),
        (AUTHORITY.sign("early", begin=DAY), AUTHORITY.pem, "tls.crt: CN=early is not valid before 20"),
        (Pair(GOOD.certificate[:-40], GOOD.key), AUTHORITY.pem, "tls.crt: holds no certificate in PEM, or half of one"),
        (Pair(b"", GOOD.key), AUTHORITY.pem, "tls.crt: holds no certificate"),
        (Pair(GOOD.certificate, b""), AUTHORITY.pem, "tls.key: holds no private key"),
        (Pair(GOOD.certificate, GOOD.key[:-40]), AUTHORITY.pem, "tls.key: holds no private key in PEM, or half of one"),
        (Pair(GOOD.certificate, encrypted_key()), AUTHORITY.pem, "tls.key: the key is encrypted"),
        (GOOD, b"", "ca.crt: holds no certificate"),
        (GOOD, AUTHORITY.pem + AUTHORITY.pem[:200], "ca.crt: "),
        (GOOD, Authority("gone", begin=-2 * DAY, end=-DAY).pem, "ca.crt: CN=gone expired"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_file_and_the_reason(pair: Pair, authorities: bytes, says: str) -> None:
    with pytest.raises(BadCertificate) as caught:
        facts_of(pair, authorities)
    assert str(caught.value).startswith(says)


def test_files_are_read_as_they_are_and_need_not_all_be_there(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(AUTHORITY.pem)
    assert read_files(TlsFiles(authorities=tmp_path / "ca.crt")) == TlsMaterial(authorities_pem=AUTHORITY.pem)
    with pytest.raises(BadCertificate, match=r"none.crt: No such file"):
        read_files(TlsFiles(authorities=tmp_path / "none.crt"))


def test_a_file_that_is_no_certificate_by_its_size_is_not_read_whole(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(b"x" * (MAX_FILE_BYTES + 1))
    with pytest.raises(BadCertificate, match="larger than 1024 KiB"):
        read_files(TlsFiles(authorities=tmp_path / "ca.crt"))


def test_keys_are_not_printed() -> None:
    assert "PRIVATE" not in repr(TlsMaterial(GOOD.certificate, GOOD.key, AUTHORITY.pem))
