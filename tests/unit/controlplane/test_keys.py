import os
import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_public_key,
)

from controlplane.keys import BadSigningKey, load_or_make_key


def test_a_key_is_made_once_private_to_the_owner_with_its_public_half(tmp_path: Path) -> None:
    file = tmp_path / "control" / "signing_key.pem"
    made, loaded = load_or_make_key(file), load_or_make_key(file)
    assert made.private_bytes_raw() == loaded.private_bytes_raw()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load_pem_public_key(file.with_suffix(".pub").read_bytes()) == made.public_key()
    assert sorted(os.listdir(file.parent)) == ["signing_key.pem", "signing_key.pub"]


def test_a_lost_public_half_is_written_again(tmp_path: Path) -> None:
    file = tmp_path / "signing_key.pem"
    key = load_or_make_key(file)
    file.with_suffix(".pub").unlink()
    load_or_make_key(file)
    assert load_pem_public_key(file.with_suffix(".pub").read_bytes()) == key.public_key()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not a key",
        generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    ],
    ids=["empty", "garbage", "not Ed25519"],
)
def test_a_file_without_a_usable_key_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "signing_key.pem"
    file.write_bytes(content)
    with pytest.raises(BadSigningKey):
        load_or_make_key(file)
    assert file.read_bytes() == content
