"""Reads texts with the sensitive data that stands in them, and measures what was found.

    {"id": "1", "text": "call 138 1234 5678", "spans": [{"type": "PHONE_CN", "start": 5, "end": 18}]}

Sets name types as they like: `NAMES` gives for each of ours what others call it. A set is measured in its own words:
of the names that it uses the first that may stand for ours. Types that it never uses are left out of precision, for
nobody labelled them there. A row without `spans` is a text in which nothing is to be found.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memplane.evaluation.dataset import BadDataset, json_rows
from memplane.evaluation.report.model import WORST, Case, Item, Report, plain, table_of

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "ID_CARD_CN": ("ID_CARD_CN", "ID_CARD"),
    "PASSPORT_CN": ("PASSPORT_CN", "PASSPORT"),
    "PASSPORT": ("PASSPORT", "US_PASSPORT"),
    "PHONE_CN": ("PHONE_CN", "PHONE_NUMBER", "PHONE"),
    "PHONE_US": ("PHONE_US", "PHONE_NUMBER", "PHONE"),
    "PHONE": ("PHONE", "PHONE_NUMBER"),
    "EMAIL": ("EMAIL", "EMAIL_ADDRESS"),
    "BANK_CARD": ("BANK_CARD", "CREDIT_CARD"),
    "CREDIT_CARD": ("CREDIT_CARD", "BANK_CARD"),
    "IBAN": ("IBAN", "IBAN_CODE"),
    "BANK_ACCOUNT": ("BANK_ACCOUNT", "US_BANK_NUMBER"),
    "CRYPTO_WALLET": ("CRYPTO_WALLET", "CRYPTO"),
    "IP": ("IP", "IP_ADDRESS"),
    "URL": ("URL", "DOMAIN_NAME"),
    "ADDRESS": ("ADDRESS", "STREET_ADDRESS"),
}


@dataclass(frozen=True, order=True)
class Span:
    """Something of a type at text[start:end]."""

    start: int
    end: int
    type: str


@dataclass(frozen=True)
class Text:
    """A line of the file."""

    id: str
    text: str
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class TypeScores:
    """Of one type: how many are labelled and found, and shares, 0 to 1, 1 of nothing.

    Attributes:
        recall: Of those labelled, those found with the very borders and type.
        precision: Of those found, those labelled so.
        covered: Of those labelled, those of which any finding covers a part: what is masked at all.
    """

    labelled: int
    found: int
    recall: float
    precision: float
    covered: float


@dataclass(frozen=True)
class Measured:
    """Scores by type of the set and over `all` of those that some detector of ours stands for, and texts by outcome.

    `alarms` counts texts without a label in which something was found, of `unlabelled` ones.
    """

    types: Mapping[str, TypeScores]
    alarms: int
    unlabelled: int


def read_texts(paths: Sequence[Path]) -> list[Text]:
    """The rows of the files in order. Raises BadDataset, which names the line and what is wrong there."""
    return [_text(place, row) for path in paths for place, row in json_rows(path)]


def in_words_of(texts: Sequence[Text], answers: Sequence[Mapping[str, Any]]) -> list[list[Span]]:
    """The spans of each answer, their types as the set names them."""
    used = {span.type for text in texts for span in text.spans}
    return [
        [Span(span["start"], span["end"], _name(span["type"], used)) for span in answer["spans"]] for answer in answers
    ]


def measure(texts: Sequence[Text], found: Sequence[Sequence[Span]]) -> Measured:
    """Scores of what was found, types in the words of the set."""
    labelled, hits, covered = Counter[str](), Counter[str](), Counter[str]()
    seen = Counter(span.type for spans in found for span in spans)
    for text, spans in zip(texts, found, strict=True):
        exact = set(spans)
        for span in text.spans:
            labelled[span.type] += 1
            hits[span.type] += span in exact
            covered[span.type] += any(other.start < span.end and span.start < other.end for other in spans)
    types = {name: _scores([name], labelled, seen, hits, covered) for name in sorted(labelled)}
    known = [name for name in labelled if seen[name]]
    types["all"] = _scores(known, labelled, seen, hits, covered)
    empty = [spans for text, spans in zip(texts, found, strict=True) if not text.spans]
    return Measured(types, sum(bool(spans) for spans in empty), len(empty))


def report(texts: Sequence[Text], found: Sequence[Sequence[Span]]) -> Report:
    """The figures by type, and the texts with most that was missed or found beyond what is labelled."""
    result = measure(texts, found)
    scores = {name: plain(each) for name, each in result.types.items()}
    pairs = sorted(zip(texts, found, strict=True), key=lambda pair: len(_amiss(*pair)), reverse=True)
    alarms = {
        "alarms": result.alarms,
        "unlabelled": result.unlabelled,
        "alarm_share": result.alarms / result.unlabelled if result.unlabelled else None,
    }
    return Report(
        title="Sensitive data",
        about={
            "texts": len(texts),
            "texts without a label in which something was found": f"{result.alarms} of {result.unlabelled}",
        },
        tables=[table_of("By type", "type", scores, charted=("recall", "precision"))],
        worst=[_case(text, spans) for text, spans in pairs[:WORST] if _amiss(text, spans)],
        data={"types": scores, **alarms},
    )


def _amiss(text: Text, found: Sequence[Span]) -> set[Span]:
    """What is either labelled or found, but not both."""
    return set(text.spans) ^ set(found)


def _case(text: Text, found: Sequence[Span]) -> Case:
    labelled = set(text.spans)
    return Case(
        text.text,
        {"id": text.id},
        expected=[_item(text, span, True) for span in text.spans],
        got=[_item(text, span, span in labelled) for span in found],
    )


def _item(text: Text, span: Span, right: bool) -> Item:
    return Item(text.text[span.start : span.end], right, span.type)


def _scores(
    names: Sequence[str], labelled: Counter[str], seen: Counter[str], hits: Counter[str], covered: Counter[str]
) -> TypeScores:
    total = sum(labelled[name] for name in names)
    found = sum(seen[name] for name in names)
    hit = sum(hits[name] for name in names)
    return TypeScores(
        labelled=total,
        found=found,
        recall=_share(hit, total),
        precision=_share(hit, found),
        covered=_share(sum(covered[name] for name in names), total),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _name(ours: str, used: set[str]) -> str:
    return next((name for name in NAMES.get(ours, (ours,)) if name in used), ours)


def _text(place: str, row: Mapping[str, Any]) -> Text:
    text = row.get("text")
    if not isinstance(text, str):
        raise BadDataset(f"{place}: text must be a text, got {text!r}")
    spans = row.get("spans", [])
    if not isinstance(spans, list):
        raise BadDataset(f"{place}: spans must be a list of objects with type, start and end")
    return Text(str(row.get("id") or place), text, tuple(_spans(place, spans, len(text))))


def _spans(place: str, spans: Sequence[Any], size: int) -> Iterator[Span]:
    for span in spans:
        start, end, name = (span.get(key) for key in ("start", "end", "type")) if isinstance(span, dict) else (0, 0, 0)
        if not (isinstance(start, int) and isinstance(end, int) and isinstance(name, str) and 0 <= start < end <= size):
            raise BadDataset(f"{place}: a span needs type, start and end with 0 ≤ start < end ≤ {size}, got {span!r}")
        yield Span(start, end, name)
