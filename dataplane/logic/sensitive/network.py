"""Addresses of people and machines: e-mail, IP, network cards, web pages, wallets of cryptocurrencies."""

import hashlib
import ipaddress
import re
from collections.abc import Iterator
from typing import Final

from dataplane.logic.sensitive.finding import Finding
from dataplane.logic.sensitive.folded import Folded
from dataplane.logic.sensitive.labels import NOT_SENSITIVE

_LOCAL: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._%+\-']{0,62}[A-Za-z0-9_+\-])?$")
_DOMAIN: Final = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?\.){1,6}[A-Za-z]{2,18}(?![A-Za-z0-9])")
_IPV4: Final = re.compile(r"(?<![0-9A-Za-z_*.\-])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9A-Za-z_*])(?!\.[0-9*])")
_IPV6: Final = re.compile(
    r"(?<![0-9A-Za-z:_*.])(?=[0-9A-Fa-f:]{0,4}:)[0-9A-Fa-f:]{4,39}(?:(?<=:)[0-9.]{7,15})?(?![0-9A-Za-z:_*])"
)
_MAC: Final = re.compile(
    r"(?<![0-9A-Za-z:_*\-])[0-9A-Fa-f]{2}([:\-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}(?![0-9A-Za-z:_*\-])"
)
_URL: Final = re.compile(
    r"(?:https?://|(?<![A-Za-z0-9.\-/@])www\.)[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]{3,2000}", re.IGNORECASE
)
_ETHEREUM: Final = re.compile(r"(?<![0-9A-Za-z])0x[0-9a-fA-F]{40}(?![0-9A-Za-z])")
_BITCOIN: Final = re.compile(r"(?<![0-9A-Za-z])[13][1-9A-HJ-NP-Za-km-z]{25,34}(?![0-9A-Za-z])")
_BECH32: Final = re.compile(r"(?<![0-9A-Za-z])bc1[02-9ac-hj-np-z]{11,71}(?![0-9A-Za-z])", re.IGNORECASE)
_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BECH32_ALPHABET: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_BECH32_ENDS: Final = frozenset((1, 0x2BC830A3))
_URL_TAIL: Final = ".,;:!?)]'"


def find(folded: Folded) -> Iterator[Finding]:
    """Findings in a folded text."""
    text = folded.text
    if "@" in text:
        yield from _emails(text)
    if folded.digits >= 4 and text.count(".") >= 3:
        yield from _ipv4(text)
    if text.count(":") >= 2 or text.count("-") >= 5:
        yield from _colons(text)
    if folded.says(("://", "www.")):
        for match in _URL.finditer(text):
            yield Finding("URL", match.start(), match.start() + len(match[0].rstrip(_URL_TAIL)), 0)
    if folded.has_long_word:
        yield from _wallets(text)


def _emails(text: str) -> Iterator[Finding]:
    """From every @ as far as an address may reach to both sides."""
    at = text.find("@")
    while at >= 0:
        local = _LOCAL.search(text[max(0, at - 65) : at])
        domain = _DOMAIN.match(text, at + 1, at + 255)
        if local is not None and domain is not None and len(local[0]) <= 64:
            yield Finding("EMAIL", at - len(local[0]), domain.end(), 2)
        at = text.find("@", at + 1)


def _ipv4(text: str) -> Iterator[Finding]:
    """Four numbers up to 255; those that every machine has are nobody's, as are versions."""
    for match in _IPV4.finditer(text):
        numbers = [int(part) for part in match[0].split(".")]
        if max(numbers) > 255 or numbers[0] in {0, 127, 255} or NOT_SENSITIVE.names(text, match.start()):
            continue
        yield Finding("IP", match.start(), match.end(), 2)


def _colons(text: str) -> Iterator[Finding]:
    for match in _MAC.finditer(text):
        yield Finding("MAC_ADDRESS", match.start(), match.end(), 2)
    for match in _IPV6.finditer(text):
        parts = [part for part in match[0].split(":") if part]
        if len(parts) >= 3 and match[0].count(":") >= 3 and _is_ipv6(match[0]):
            yield Finding("IP", match.start(), match.end(), 2)


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _wallets(text: str) -> Iterator[Finding]:
    if "0x" in text:
        for match in _ETHEREUM.finditer(text):
            yield Finding("CRYPTO_WALLET", match.start(), match.end(), 2)
    for match in _BITCOIN.finditer(text):
        if _is_base58_check(match[0]):
            yield Finding("CRYPTO_WALLET", match.start(), match.end(), 2)
    for match in _BECH32.finditer(text):
        if _is_bech32(match[0].lower()):
            yield Finding("CRYPTO_WALLET", match.start(), match.end(), 2)


def _is_base58_check(address: str) -> bool:
    """25 bytes, the last four the head of the double SHA-256 of the others."""
    number = 0
    for letter in address:
        number = number * 58 + _BASE58.index(letter)
    if number >= 1 << 200:
        return False
    raw = number.to_bytes(25, "big")
    return hashlib.sha256(hashlib.sha256(raw[:-4]).digest()).digest()[:4] == raw[-4:]


def _is_bech32(address: str) -> bool:
    """BIP 173 and BIP 350: the polynomial over prefix and data leaves 1 or 0x2bc830a3."""
    check = 1
    values = [3, 3, 0, 2, 3, *(_BECH32_ALPHABET.index(letter) for letter in address[3:])]
    for value in values:
        top = check >> 25
        check = (check & 0x1FFFFFF) << 5 ^ value
        for place, factor in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            check ^= factor if top >> place & 1 else 0
    return check in _BECH32_ENDS
