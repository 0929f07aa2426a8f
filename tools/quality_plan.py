"""What `make quality` measures on which sets of the evaluation data, and the goals that its figures have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MOST_ROWS = 2000
"""At most so many rows of a set for a task that embeds, evenly spread. Keeps a run below 30 minutes."""


@dataclass(frozen=True)
class Goal:
    """A figure by its path in the JSON of a measurement, and its bound. With neither bound it is told alone."""

    path: tuple[str, ...]
    least: float | None = None
    most: float | None = None

    def met(self, value: float) -> bool | None:
        """Whether the value is within the bound; None: there is none."""
        if self.least is None and self.most is None:
            return None
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        return f"≥ {self.least}" if self.least is not None else f"≤ {self.most}" if self.most is not None else ""


@dataclass(frozen=True)
class Measurement:
    """A run of `memplane eval`.

    Attributes:
        name: What it is called in the report.
        task: The subcommand.
        files: Options and the files of the data folder that they name.
        goals: What is told of it.
        most_rows: Files with more rows are thinned; 0: never.
        options: Further options.
    """

    name: str
    task: str
    files: Sequence[tuple[str, str]]
    goals: Sequence[Goal]
    most_rows: int = 0
    options: Sequence[str] = field(default=())


def _data(*paths: str) -> tuple[tuple[str, str], ...]:
    return tuple(("--data", path) for path in paths)


_DETECTED = (Goal(("types", "all", "recall"), least=0.95), Goal(("types", "all", "precision"), least=0.95))
_STRUCTURED = ("CREDIT_CARD", "DOMAIN_NAME", "EMAIL_ADDRESS", "IBAN_CODE", "IP_ADDRESS", "PHONE_NUMBER", "US_SSN")


_PAIR_GOALS = (
    Goal(("duplicate_f1",), least=0.92),
    Goal(("conflict_f1",), least=0.85),
    Goal(("conflicts_merged",), most=0.01),
    Goal(("others_as_conflicts",), most=0.03),
)
_PAIRS_TOLD = (Goal(("duplicate_f1",)), Goal(("duplicate_auc",)), Goal(("conflict_f1",)), Goal(("conflict_auc",)))
_GATE_GOALS = (Goal(("junk_lasting",), most=0.1), Goal(("needed_kept",), least=0.85))
_BENIGN = ("locomo/gate.jsonl", "msc_gate_en/gate.jsonl")

JUDGEMENTS: Sequence[Measurement] = (
    Measurement(
        "dates",
        "dates",
        _data("dates/expressions.jsonl"),
        (
            Goal(("all", "exact"), least=0.90),
            Goal(("Chinese", "exact"), least=0.95),
            Goal(("ASCII", "exact"), least=0.95),
        ),
    ),
    Measurement(
        "guard, attacks and benign turns",
        "guard",
        (
            *_data("injection_en/injection.jsonl", "injection_zh_own/injection_zh.jsonl"),
            *(("--benign", path) for path in _BENIGN),
        ),
        (Goal(("all", "recall"), least=0.90), Goal(("gate", "false_positives"), most=0.01)),
    ),
    *(
        Measurement(
            f"sensitive, synthetic {language}",
            "sensitive",
            _data(f"synthetic_pii_own/{language}.jsonl"),
            _DETECTED,
        )
        for language in ("zh", "en")
    ),
    Measurement(
        "sensitive, Presidio",
        "sensitive",
        _data("presidio_pii_en/pii.jsonl"),
        tuple(Goal(("types", name, "recall"), least=0.80) for name in (*_STRUCTURED, "US_DRIVER_LICENSE")),
    ),
    Measurement("sensitive, benign turns", "sensitive", _data(*_BENIGN), (Goal(("alarm_share",), most=0.005),)),
    *(
        Measurement(f"pairs, {name}", "pairs", _data(f"{name}/pairs.jsonl"), _PAIR_GOALS)
        for name in ("memdaily_pairs_zh", "conflict_en_own")
    ),
    *(
        Measurement(f"pairs, {path.partition('/')[0]}", "pairs", _data(path), _PAIRS_TOLD, most_rows=500)
        for path in (
            "ocnli_zh/ocnli_dev.jsonl",
            "csnli_zh/csnli.jsonl",
            "sick_en/sick.jsonl",
            "pawsx_zh/pawsx_zh.jsonl",
        )
    ),
    Measurement(
        "gate, MSC",
        "gate",
        _data("msc_gate_en/gate.jsonl"),
        (Goal(("auc",), least=0.80), *_GATE_GOALS[:1]),
        most_rows=MOST_ROWS,
    ),
    Measurement(
        "gate, LoCoMo",
        "gate",
        _data("locomo/gate.jsonl"),
        (Goal(("auc",), least=0.75), *_GATE_GOALS),
        most_rows=MOST_ROWS,
    ),
    Measurement(
        "gate, MemoryBank",
        "gate",
        _data("memorybank/zh_gate.jsonl"),
        (Goal(("f1_kept",), least=0.85), *_GATE_GOALS[:1], Goal(("worth_kept",), least=0.85)),
    ),
)

SEARCHES: Mapping[str, tuple[float, float]] = {
    "memorybank_zh": (0.90, 0.96),
    "madial_zh": (0.62, 0.76),
    "madial_en": (0.62, 0.76),
    "locomo": (0.68, 0.78),
    "memdaily_zh": (0.66, 0.80),
}
"""The goals for recall@5 and recall@10 of each set, quick sets first."""
CATEGORIES: Mapping[str, Mapping[str, float]] = {"locomo": {"multi_hop": 0.50, "temporal": 0.82}}
"""Goals for recall@10 of single categories."""
