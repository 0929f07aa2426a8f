"""What an administrator says of tokens: whose, for whom, signed how, and which claims tell who calls."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from memplane.settings import BadConfig, Setting, Settings, suggestion

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by a private key that only the issuer has (RFC 7518, RFC 8037)."""
REQUIRED: Final = ("jwt-issuer", "jwt-audience", "jwt-jwks", "jwt-algorithms")

SETTINGS: Final = (
    Setting("jwt-issuer", "", "issuer (iss) of the tokens that are taken; empty, with the next three: no tokens are"),
    Setting("jwt-audience", "", "audience (aud) that a token must name, such as memplane"),
    Setting("jwt-jwks", "", "keys that tokens are signed with (JWKS): a file, or an http or https URL"),
    Setting("jwt-algorithms", "", f"algorithms that are taken, with commas: of {', '.join(ALGORITHMS)}"),
    Setting("jwt-principal-claim", "sub", "claim that tells who calls: one of a principal's token_subjects"),
    Setting("jwt-groups-claim", "groups", "claim with names that groups of the policy list under claims"),
    Setting("jwt-leeway-s", "30", "seconds that clocks may differ from the issuer's (exp, nbf, iat), 0 to 300"),
    Setting("jwt-refresh-s", "300", "seconds between two looks at a URL of keys, 10 to 86400; a file is seen at once"),
    Setting("jwt-jwks-ca", "", "CA certificates (PEM) of that URL; empty: those that the system's Python trusts"),
)


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """The settings of that name. `jwks` is a path, or an http or https URL."""

    issuer: str
    audience: str
    jwks: str
    algorithms: tuple[str, ...]
    principal_claim: str = "sub"
    groups_claim: str = "groups"
    leeway_s: float = 30.0
    refresh_s: float = 300.0
    jwks_ca: Path | None = None

    @property
    def is_url(self) -> bool:
        """Whether the keys come from a server, not from a file."""
        return urlsplit(self.jwks).scheme in ("http", "https")

    @classmethod
    def of(cls, given: Settings) -> "TokenSettings | None":
        """From what was given; None: no tokens are taken. Raises BadConfig, also when a part of it is missing."""
        missing = [name for name in REQUIRED if not given.text(name).strip()]
        if len(missing) == len(REQUIRED):
            return None
        if missing:
            raise BadConfig(f"{missing[0]}: is required beside {_given(given)}: tokens need {', '.join(REQUIRED)}")
        settings = cls(
            issuer=given.text("jwt-issuer").strip(),
            audience=given.text("jwt-audience").strip(),
            jwks=given.text("jwt-jwks").strip(),
            algorithms=_algorithms(given.text("jwt-algorithms")),
            principal_claim=given.text("jwt-principal-claim").strip(),
            groups_claim=given.text("jwt-groups-claim").strip(),
            leeway_s=given.number("jwt-leeway-s", 0, 300),
            refresh_s=given.number("jwt-refresh-s", 10, 86_400),
            jwks_ca=given.path("jwt-jwks-ca"),
        )
        settings.check()
        return settings

    def check(self) -> None:
        """Raises BadConfig for what could never work."""
        if not self.principal_claim:
            raise BadConfig("jwt-principal-claim: is required, such as sub")
        parts = urlsplit(self.jwks)
        if "://" in self.jwks and not (self.is_url and parts.hostname):
            raise BadConfig(f"jwt-jwks: {self.jwks!r} is no file and no URL such as https://login.example/jwks.json")
        if parts.username or parts.password:
            raise BadConfig("jwt-jwks: keys are public; a URL with a password is not taken")
        if self.jwks_ca is not None and not self.jwks_ca.is_file():
            raise BadConfig(f"jwt-jwks-ca: there is no file {self.jwks_ca}")


def _given(given: Settings) -> str:
    return next(name for name in REQUIRED if given.text(name).strip())


def _algorithms(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.replace(",", " ").split()))
    for name in names:
        if name.lower() == "none":
            raise BadConfig("jwt-algorithms: 'none' is no signature: anybody could make such a token")
        if name.upper().startswith("HS"):
            raise BadConfig(f"jwt-algorithms: {name!r} has a shared secret: whoever checks tokens could make them")
        if name not in ALGORITHMS:
            raise BadConfig(f"jwt-algorithms: {name!r} is not one{suggestion(name, ALGORITHMS)}")
    if not names:
        raise BadConfig(f"jwt-algorithms: names none; there are {', '.join(ALGORITHMS)}")
    return names
