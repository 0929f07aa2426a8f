"""Who calls, as far as credentials tell: what authentication gives and access rules are asked with."""

from dataclasses import dataclass
from enum import Enum


class Method(Enum):
    """How a caller was recognised."""

    API_KEY = "api_key"
    TOKEN = "token"  # noqa: S105 - a name
    CERTIFICATE = "certificate"


@dataclass(frozen=True, slots=True)
class Identity:
    """A caller. `claims` are the values of the token's groups claim, which bring the groups that list them.

    `expire_time_us`: when the credential ends (microseconds since 1970 UTC); None: it does not.
    """

    principal_id: str
    method: Method = Method.API_KEY
    claims: frozenset[str] = frozenset()
    expire_time_us: int | None = None
