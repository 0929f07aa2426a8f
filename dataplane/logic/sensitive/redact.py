"""Sensitive data taken out of a memory's free texts as a policy says, before anything else reads them.

What is to be masked, rejected or reviewed is masked in every case, so that no action ever keeps a value. A masked text
is looked at again until nothing is found, so that redacting twice changes nothing. A number, or a text under a key that
names it (`{"ssn": 346277908}`), is read with its key before it.

Ids (namespace, subject, session, agent, operator, source and request) are addresses, not texts: they are left alone.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dataplane.logic.sensitive.detect import detect
from dataplane.logic.sensitive.mask import mask
from dataplane.model import Redaction
from memplane.policy.sensitive import SensitivePolicy

MOST_ROUNDS: Final = 8
"""So often a text is looked at; what masked forms leave for a second round is rare, for a third unheard of."""

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-.]+")
_SECRET_KEYS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("password", "passwd", "pwd", "passphrase", "passcode", "密码", "口令"), "PASSWORD"),
    **dict.fromkeys(("api key", "apikey", "secret key", "access key", "client secret", "密钥"), "API_KEY"),
    "private key": "PRIVATE_KEY",
}


@dataclass(frozen=True, slots=True)
class Texts:
    """The free texts of a memory. Fields are named as the contract names them."""

    content: str = ""
    speaker: str = ""
    fact_key: str = ""
    entity_type: str = ""
    category: str = ""
    source_ref: str = ""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    structured: Mapping[str, object] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Characters, about."""
        return len(self.content) + sum(map(len, self.tags)) + len(str(self.metadata)) + len(str(self.structured))


def redact(texts: Texts, policy: SensitivePolicy) -> tuple[Texts, tuple[Redaction, ...]]:
    """The texts as they may be kept, and what was found in which field."""
    if not policy.enabled:
        return texts, ()
    redactor = _Redactor(policy.actions.model_dump())
    clean = Texts(
        content=redactor.text("content", texts.content),
        speaker=redactor.text("speaker", texts.speaker),
        fact_key=redactor.text("fact_key", texts.fact_key),
        entity_type=redactor.text("entity_type", texts.entity_type),
        category=redactor.text("category", texts.category),
        source_ref=redactor.text("source.ref", texts.source_ref),
        tags=tuple(dict.fromkeys(redactor.text("tags", tag) for tag in texts.tags)),
        metadata=redactor.mapping("metadata", texts.metadata),
        structured=redactor.mapping("structured", texts.structured),
    )
    return clean, redactor.redactions()


def redact_text(text: str, policy: SensitivePolicy) -> str:
    """One text as it may be kept, such as a reason."""
    return _Redactor(policy.actions.model_dump()).text("", text) if policy.enabled else text


class _Redactor:
    """Masks, and counts what it masked."""

    def __init__(self, actions: Mapping[str, str]):
        self._actions = actions
        self._found: Counter[tuple[str, str]] = Counter()

    def redactions(self) -> tuple[Redaction, ...]:
        """What was masked: type, field, how many, and the action of the type."""
        return tuple(
            Redaction(type_, where, count, self._actions[type_]) for (type_, where), count in self._found.items()
        )

    def text(self, where: str, text: str, key: str = "") -> str:
        """The text masked; what its key tells counts."""
        if not text:
            return text
        known = _SECRET_KEYS.get(key.strip(" :").lower())
        if known is not None and self._actions[known] != "allow" and text != f"[{known}]":
            self._found[known, where] += 1
            return mask(known, text)
        for _ in range(MOST_ROUNDS):
            masked = self._round(where, text, key)
            if masked == text:
                break
            text = masked
        return text

    def _round(self, where: str, text: str, key: str) -> str:
        parts, place, shift = [], 0, len(key)
        for finding in detect(key + text):
            start, end = finding.start - shift, finding.end - shift
            if start < 0 or self._actions[finding.type] == "allow":
                continue
            shown = mask(finding.type, text[start:end])
            self._found[finding.type, where] += shown != text[start:end]
            parts += [text[place:start], shown]
            place = end
        return "".join((*parts, text[place:]))

    def mapping(self, where: str, values: Mapping[str, object]) -> dict[str, object]:
        """A mapping with its texts, numbers and keys masked."""
        return {self.text(where, name): self._value(where, value, name) for name, value in values.items()}

    def _value(self, where: str, value: object, name: str) -> object:
        key = f"{_CAMEL.sub(' ', name)}: " if name else ""
        if isinstance(value, str):
            return self.text(where, value, key)
        if isinstance(value, Mapping):
            return self.mapping(where, value)
        if isinstance(value, Sequence):
            return [self._value(where, item, name) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool) and float(value).is_integer():
            shown = self.text(where, str(int(value)), key)
            return value if shown == str(int(value)) else shown
        return value
