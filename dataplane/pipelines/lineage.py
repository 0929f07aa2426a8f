"""What this process knows of the record store's past, for whoever would rely on what was read in another one."""

import logging

from dataplane.ports import RecordStore

log = logging.getLogger("memplane.beacons")

RECORD_STORE_RESTORED = "RECORD_STORE_RESTORED"
"""Code of the problem, and reason in `degraded`."""
BEACON = "beacon:"
ERA = f"{BEACON}era"
RESTORED = f"{BEACON}restored"
"""Markers: the era, and the era that acceptance will begin; higher than the era while a restore is not accepted."""


class Lineage:
    """Kept by `beacons`. `era` rises when an operator accepts a restored record store.

    `is_restored`: the record store was restored, or is another one, and nobody has accepted that yet.
    """

    def __init__(self) -> None:
        self.era = 0
        self.is_restored = False

    @property
    def name(self) -> str:
        """A text for keys of caches: what was kept under another one may come from a past that is gone."""
        return f"{self.era}{'?' if self.is_restored else ''}"


async def accept_restored(store: RecordStore, deadline_s: float) -> None:
    """Begins a new era if the record store was restored: what it says now is right. Raises BackendUnavailable."""
    due = await store.marker(RESTORED, deadline_s)
    if due > await store.marker(ERA, deadline_s):
        await store.raise_marker(ERA, due, 1, deadline_s)
        log.warning("the restored record store is accepted; every index is repaired")
