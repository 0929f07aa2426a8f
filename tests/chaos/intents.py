"""What a client wants to do, one thing after another: a pure function of the run's seed and the client's number.

An intent names no memory: which one it is about follows from `pick` and what the client knows by then, so that the
sequence is the same whatever the answers were.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

SHARES = {
    "write": 14,
    "write_fact": 8,
    "write_shared": 6,
    "write_passing": 1,
    "write_foreign": 0.5,
    "batch": 2,
    "update": 8,
    "update_shared": 3,
    "forget": 14,
    "forget_shared": 4,
    "search": 12,
    "search_fresh": 8,
    "search_forgotten": 6,
    "search_foreign": 3,
    "context": 4,
    "get": 12,
    "get_forgotten": 6,
    "get_foreign": 2,
    "list": 6,
    "poll": 8,
}
"""How often each is wanted, relative to the others. Forgets keep up with half of the writes, so that a long run stays
as quick as it began."""

DEADLINES_S = (0.3, 1.0, 3.0, 5.0)
DEADLINE_SHARES = (0.02, 0.08, 0.4, 0.5)
BATCH_SIZES = (2, 3, 8)
SUBJECT_SIZE = 40
"""Statements of one subject, so that a list of it has few pages."""

FACTS = 8
SHARED_STATEMENTS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One thing wanted. `pick` 0 to below 1 chooses among what the client knows; `number` counts the client's texts."""

    index: int
    kind: str
    number: int
    pick: float
    deadline_s: float
    is_queued: bool
    has_request_id: bool
    is_hard: bool
    has_etag: bool
    size: int


def intents(seed: int, client: int) -> Iterator[Intent]:
    """The endless sequence of a client."""
    rng = np.random.default_rng([seed, client])
    kinds, shares = list(SHARES), np.array(list(SHARES.values()))
    number = index = 0
    while True:
        intent = Intent(
            index=index,
            kind=str(rng.choice(kinds, p=shares / shares.sum())),
            number=number,
            pick=float(rng.random()),
            deadline_s=float(rng.choice(DEADLINES_S, p=DEADLINE_SHARES)),
            is_queued=bool(rng.random() < 0.3),
            has_request_id=bool(rng.random() < 0.8),
            is_hard=bool(rng.random() < 0.5),
            has_etag=bool(rng.random() < 0.5),
            size=int(rng.choice(BATCH_SIZES)),
        )
        yield intent
        index += 1
        number += intent.size if intent.kind == "batch" else 1


NAMES = ("Lea Vogt", "Tom Baker", "Aylin Kaya", "李娜", "王强", "陈静")
THINGS = ("passport", "spare key", "blue folder", "contract", "camera", "ladder")
PLACES = ("top drawer", "garage", "archive room", "lower shelf", "reception", "safe")
THINGS_ZH = ("护照", "备用钥匙", "蓝色文件夹", "合同", "相机", "梯子")
PLACES_ZH = ("上层抽屉", "车库", "档案室", "下层架子", "前台", "保险柜")


def sentence(word: str) -> str:
    """The statement that a marker stands in; every third is Chinese. The default policy keeps each for long."""
    number = sum(word.encode()) + int(word[-6:])
    name, thing, place = NAMES[number % 6], number // 6 % 6, number // 36 % 6
    if number % 3 == 0:
        return f"请记住：{name}把{THINGS_ZH[thing]}放在{PLACES_ZH[place]}，编号 {word}。"
    return f"Remember: {name} keeps the {THINGS[thing]} in the {PLACES[place]}, note {word}."
