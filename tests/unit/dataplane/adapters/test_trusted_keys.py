from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dataplane.adapters.trusted_keys import NoTrustedKey, read_trusted_keys
from memplane.policy.snapshot import key_id

FORMAT = (Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def test_every_key_of_the_file_is_known_by_its_id(tmp_path: Path) -> None:
    keys = [Ed25519PrivateKey.generate().public_key() for _ in range(2)]
    (tmp_path / "keys").write_bytes(b"# a note\n" + b"\n".join(key.public_bytes(*FORMAT) for key in keys))
    assert set(read_trusted_keys(tmp_path / "keys")) == {key_id(key) for key in keys}


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
        generate_private_key(SECP256R1()).public_key().public_bytes(*FORMAT),
    ],
    ids=["no file", "empty", "garbage", "not Ed25519"],
)
def test_a_file_without_a_usable_key_is_an_error(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "keys").write_bytes(content)
    with pytest.raises(NoTrustedKey):
        read_trusted_keys(tmp_path / "keys")
