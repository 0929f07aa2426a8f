from pathlib import Path
from typing import Any

import pytest

from controlplane.config import read_config as read_control
from dataplane.config import read_config as read_data
from memplane.settings import BadConfig

WHOLE = {
    "jwt-issuer": "https://login.bank.example",
    "jwt-audience": "memplane",
    "jwt-jwks": "/etc/memplane/jwks.json",
    "jwt-algorithms": "RS256, ES256",
}


def control(**given: str) -> Any:
    flags = [part for name, value in given.items() for part in (f"--{name}", value)]
    return read_control(flags, {}).tokens


def test_without_settings_no_tokens_are_taken_on_either_plane() -> None:
    assert control() is None
    assert read_data(["--node-key", "k", "--trusted-key", "f"], {}).tokens is None


def test_both_planes_take_the_same_settings() -> None:
    tokens = control(**WHOLE)
    assert tokens.algorithms == ("RS256", "ES256")
    assert (tokens.principal_claim, tokens.groups_claim, tokens.leeway_s) == ("sub", "groups", 30.0)
    assert not tokens.is_url
    environment = {f"MEMPLANE_DATA_{name.replace('-', '_').upper()}": value for name, value in WHOLE.items()}
    assert read_data(["--node-key", "k", "--trusted-key", "f"], environment).tokens == tokens


@pytest.mark.parametrize("missing", list(WHOLE))
def test_a_part_of_the_settings_ends_the_start(missing: str) -> None:
    given = {name: value for name, value in WHOLE.items() if name != missing}
    with pytest.raises(BadConfig, match=f"^{missing}: is required beside jwt-"):
        control(**given)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("jwt-algorithms", "none", "no signature"),
        ("jwt-algorithms", "RS256,None", "no signature"),
        ("jwt-algorithms", "HS256", "shared secret"),
        ("jwt-algorithms", "hs512", "shared secret"),
        ("jwt-algorithms", "RS265", "did you mean RS256"),
        ("jwt-algorithms", ",", "names none"),
        ("jwt-jwks", "ftp://login.example/keys", "no file and no URL"),
        ("jwt-jwks", "https://", "no file and no URL"),
        ("jwt-jwks", "https://me:secret@login.example/keys", "password is not taken"),
        ("jwt-leeway-s", "301", "from 0 to 300"),
        ("jwt-refresh-s", "1", "from 10 to 86400"),
        ("jwt-principal-claim", " ", "such as sub"),
        ("jwt-jwks-ca", "/nowhere/ca.pem", "there is no file"),
    ],
)
def test_what_could_never_work_ends_the_start(name: str, value: str, told: str) -> None:
    with pytest.raises(BadConfig, match=f"^{name}: .*{told}"):
        control(**{**WHOLE, name: value})


def test_a_url_and_its_authorities_are_taken(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text("")
    tokens = control(**{**WHOLE, "jwt-jwks": "https://login.bank.example/jwks.json", "jwt-jwks-ca": str(ca)})
    assert tokens.is_url
    assert tokens.jwks_ca == ca
