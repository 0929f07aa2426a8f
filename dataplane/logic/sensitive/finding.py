"""What detectors give: where in a text something of a type stands; and which of those that overlap are kept."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Something of a type of `SensitiveActions` at text[start:end].

    `weight`: where two overlap the heavier stands, 2 where a checksum or a fixed shape confirms it, 1 where only a
    label or a looser shape does, 0 for what may well be part of something else.
    """

    type: str
    start: int
    end: int
    weight: int = 1


def apart(findings: Iterable[Finding]) -> list[Finding]:
    """Findings without overlaps, in the order of the text: the heavier, then the longer, then the earlier stands."""
    kept: list[Finding] = []
    group: list[Finding] = []
    end = 0
    for finding in sorted(findings, key=lambda one: (one.start, one.end)):
        if group and finding.start >= end:
            kept += _apart_in(group)
            group = []
        group.append(finding)
        end = max(end, finding.end) if len(group) > 1 else finding.end
    return kept + _apart_in(group)


def _apart_in(group: list[Finding]) -> list[Finding]:
    """Of findings that hang together by overlaps; these are few."""
    if len(group) < 2:
        return group
    kept: list[Finding] = []
    for finding in sorted(group, key=lambda one: (-one.weight, one.start - one.end, one.start)):
        if all(finding.end <= other.start or other.end <= finding.start for other in kept):
            kept.append(finding)
    return sorted(kept, key=lambda one: one.start)
