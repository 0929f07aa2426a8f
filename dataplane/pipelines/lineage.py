"""What this process knows of the record store's past, for whoever would rely on what was read in another one."""

RECORD_STORE_RESTORED = "RECORD_STORE_RESTORED"
"""Code of the problem, and reason in `degraded`."""


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
