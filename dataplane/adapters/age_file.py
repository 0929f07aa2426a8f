"""How old the last good policy was when it was noted last: a small file beside it."""

import asyncio
import json
import logging
import math
from pathlib import Path

from dataplane.logic.staleness import AgeNote, age_at_start_s
from dataplane.policy_holder import PolicyHolder
from dataplane.ports import Clock
from memplane.policy.snapshot import PolicySnapshot

log = logging.getLogger("memplane.dataplane.policy")

NOTE_EVERY_S = 10.0
"""Least time between two notes: after a crash the age is too small by no more, plus what a call took. Unmeasured."""


class AgeFile:
    """A note in a file that is replaced whole. Blocking; call it off the event loop.

    It is not forced to the disk: what a loss of power takes away leaves an older note, by which the policy is older.
    """

    def __init__(self, path: Path):
        self._path = path

    @classmethod
    def beside(cls, last_good_file: Path) -> "AgeFile":
        """The note on this copy."""
        return cls(last_good_file.with_name(last_good_file.name + ".age"))

    def read(self) -> AgeNote | None:
        """The note; None when there is no file, or none of ours. Raises OSError when it is unreadable."""
        try:
            return _parse(json.loads(self._path.read_bytes()))
        except (FileNotFoundError, ValueError):
            return None

    def write(self, note: AgeNote) -> None:
        """Keeps the note. Raises OSError, and then the one before is still there."""
        age_s = note.age_s if math.isfinite(note.age_s) else None
        text = json.dumps({"generation": note.generation, "age_s": age_s, "noted_us": note.noted_us})
        draft = self._path.with_name(self._path.name + ".new")
        draft.write_text(text + "\n", encoding="ascii")
        draft.replace(self._path)


def _parse(found: object) -> AgeNote:
    match found:
        case {"generation": int(generation), "age_s": None, "noted_us": int(noted_us)}:
            return AgeNote(generation, math.inf, noted_us)
        case {"generation": int(generation), "age_s": int(age_s) | float(age_s), "noted_us": int(noted_us)}:
            if age_s >= 0:
                return AgeNote(generation, float(age_s), noted_us)
    raise ValueError("no note of ours")


class AgeNotes:
    """Notes the age of the policy that `holder` has, and knows it again at the next start."""

    def __init__(self, holder: PolicyHolder, file: AgeFile, clock: Clock):
        self._holder = holder
        self._file = file
        self._clock = clock
        self._noted_s = -math.inf

    async def at_start(self, snapshot: PolicySnapshot) -> float:
        """How old the last good policy is, in seconds; inf: unknown."""
        try:
            note = await asyncio.to_thread(self._file.read)
        except OSError as error:
            log.warning("the age of the last good policy counts from when it was made: %s", error)
            note = None
        return age_at_start_s(note, snapshot.generation, snapshot.create_time_us, self._clock.now_us())

    async def note_now_and_then(self) -> None:
        """Notes the age, unless it was noted within NOTE_EVERY_S."""
        if asyncio.get_running_loop().time() - self._noted_s >= NOTE_EVERY_S:
            await self.note()

    async def note(self) -> None:
        """Notes the age. When that fails, an older note stays, by which the policy is older: that does no harm."""
        if self._holder.current is None:
            return
        self._noted_s = asyncio.get_running_loop().time()
        note = AgeNote(self._holder.current.generation, self._holder.age_s, self._clock.now_us())
        try:
            await asyncio.to_thread(self._file.write, note)
        except OSError as error:
            log.debug("the age of the policy is not noted: %s", error)
