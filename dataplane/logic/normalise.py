"""Text made safe and comparable before anything else reads it.

Rules, in this order; each is linear in the length of the text.

1. CR LF, lone CR, NEL and the line and paragraph separators become LF.
2. Gone are: control characters other than LF and TAB (NUL too), surrogates, noncharacters, bidirectional controls, and
   characters that draw nothing (zero-width space, word joiner, BOM, soft hyphen, invisible operators, tags).
3. Tag characters stay where they spell an emoji flag: a black flag, 1 to 7 tag letters or digits, the cancel tag.
4. A variation selector stays behind a character that draws something; a second one in a row goes.
5. ZWJ and ZWNJ stay between two characters of a script whose letters join or stack (Arabic, Indic, Myanmar, Khmer,
   Mongolian and their kin). ZWJ stays also between two pictographs. Elsewhere they go.
6. NFC (Unicode Standard Annex 15). Combining marks beyond the 64th in a row go, so that NFC stays linear.
7. Outer whitespace goes. A text that draws nothing (whitespace, Hangul fillers, the blank Braille pattern) is empty.

Normalising twice changes nothing more.
"""

import hashlib
import re
import unicodedata

from dataplane.model import Kind

_LINE_ENDS = re.compile("\r\n|[\r\x85\u2028\u2029]")
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufdd0-\ufdef\ufeff\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e001f\U000e0080-\U000e00ff\U000e01f0-\U000e0fff]+"
)
_FLAG = "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,7}\U000e007f"
_TAGS = re.compile(f"({_FLAG})|[\U000e0020-\U000e007f]+")
_SELECTOR = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_STRAY_SELECTORS = re.compile(f"(?<![^\\s\u200c\u200d{_SELECTOR}])[{_SELECTOR}]+|(?<=[{_SELECTOR}])[{_SELECTOR}]+")
_PICTOGRAPH = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299"
    "\U0001f000-\U0001faff"
)
_JOINING = (
    "\u0600-\u0dff\u0f00-\u109f\u1780-\u18af\ua840-\ua8ff\ua980-\uabff\ufb50-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc"
    "\U00010800-\U00011fff"
)
_JOINER = re.compile("[\u200c\u200d]")
_JOINERS = re.compile(
    f"((?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])"
    f"|(?:(?<=[{_PICTOGRAPH}])|(?<=[{_PICTOGRAPH}]\ufe0f))\u200d(?=[{_PICTOGRAPH}]))"
    "|[\u200c\u200d]"
)
_SURPLUS_MARKS = re.compile(rb"(?<=[^\x00]{64})[^\x00]+")
_VISIBLE = re.compile(f"[^\\s\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\uffa0{_SELECTOR}]")
_WHITESPACE = re.compile(r"\s+")


def normalise_content(text: str) -> str:
    """The text by the rules above; "" when nothing visible is left."""
    text = _INVISIBLE.sub("", _LINE_ENDS.sub("\n", text))
    if not text.isascii():
        text = _shaped(text)
    text = text.strip()
    return text if _VISIBLE.search(text) else ""


def normalise_label(text: str) -> str:
    """An id, name or tag by the same rules, on one line: every run of whitespace becomes one space."""
    return _WHITESPACE.sub(" ", normalise_content(text))


def content_hash(namespace: str, content: str, kind: Kind) -> str:
    """SHA-256 (64 hex digits) of a namespace, normalised content and kind, each with its length before it."""
    digest = hashlib.sha256()
    for part in (namespace, content, kind.name):
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()


def _shaped(text: str) -> str:
    text = _composed(_STRAY_SELECTORS.sub("", _TAGS.sub(lambda found: found[1] or "", text)))
    joined = _joined(text)
    if joined == text:
        return text
    joined = _composed(joined)
    # Marks that a joiner kept apart may change places, and so another joiner lose its neighbour: then all of them go.
    return joined if _joined(joined) == joined else _composed(_JOINER.sub("", joined))


def _joined(text: str) -> str:
    return _JOINERS.sub(lambda found: found[1] or "", text)


def _composed(text: str) -> str:
    return _without_surplus_marks(unicodedata.normalize("NFC", _without_surplus_marks(text)))


def _without_surplus_marks(text: str) -> str:
    classes = bytes(map(unicodedata.combining, text))
    kept, start = [], 0
    for surplus in _SURPLUS_MARKS.finditer(classes):
        kept.append(text[start : surplus.start()])
        start = surplus.end()
    return "".join(kept) + text[start:] if kept else text
