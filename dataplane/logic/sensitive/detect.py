"""Everything sensitive that stands in a text."""

from dataplane.logic.sensitive import credentials, network, numbers, papers, phones, places
from dataplane.logic.sensitive.finding import Finding, apart
from dataplane.logic.sensitive.folded import folded


def detect(text: str) -> list[Finding]:
    """What every detector finds, in the order of the text, without overlaps.

    Linear in the text: 1 MB of digits takes seconds, see docs/quality/sensitive.md.
    """
    plain = folded(text)
    found = [*credentials.find(plain), *network.find(plain)]
    if any(map(str.isdecimal, plain)):
        found += [*numbers.find(plain), *phones.find(plain), *papers.find(plain), *places.find(plain)]
    elif "微信" in plain or "wechat" in plain.lower():
        found += papers.find(plain)
    return apart(found)
