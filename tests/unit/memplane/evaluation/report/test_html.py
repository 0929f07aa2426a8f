from html.parser import HTMLParser

import hypothesis.strategies as st
from hypothesis import given, settings

from memplane.evaluation.report.html import html
from memplane.evaluation.report.model import Case, Item, Report, Table

VOID = {"meta", "br", "rect", "line", "circle"}
NASTY = "</title></style><script>alert(1)</script><img src=http://x.test/a onerror=b> \" ' & | `"


class Page(HTMLParser):
    """Collects tags, attributes and text, and checks that every tag is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []
        self.said = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data


def report(text: str) -> Report:
    intervals = Table(
        "Differences", ("x", "difference", "low", "high"), [(text, 0.1, -0.1, 0.3)], ("difference",), "intervals"
    )
    return Report(
        title=text,
        about={text: text},
        tables=[
            Table(text, (f"{text}?", "n", "share"), [(text, 3, 0.5), ("b", None, 1.0)], ("share",), note=text),
            intervals,
        ],
        worst=[Case(text, {text: 0.25}, [Item(text, True, text)], [Item(text, False)])],
    )


@settings(max_examples=50)
@given(st.text(min_size=1))
def test_no_text_becomes_markup(text: str) -> None:
    plain, page = Page(html(report("a"))), Page(html(report(text)))
    assert page.tags == plain.tags
    assert [name for name, _ in page.attributes] == [name for name, _ in plain.attributes]
    assert page.open == []


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    page = Page(html(report(NASTY)))
    assert not {"script", "link", "img", "iframe", "object", "base", "form", "a"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name in ("src", "href") or name.startswith("on")]
    assert dict(page.attributes)["content"].startswith("default-src 'none'")
    assert "url(" not in html(report(NASTY))


def test_figures_charts_and_lists_are_on_it() -> None:
    text = html(report("Café"))
    assert text.count("<svg") == 2
    page = Page(text)
    for told in ("Café", "0.500", "+0.100", "expected", "got", "–"):
        assert told in page.said
