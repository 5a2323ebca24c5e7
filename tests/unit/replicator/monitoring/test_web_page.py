"""The status as a page: all of it is there, and nothing that servers say is more than text."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from html.parser import HTMLParser
from typing import Any

import pytest

from replicator.monitoring.web_page import MOST_TARGETS, status_page
from replicator.status import DifferingShard, DifferingTarget, TargetStatus, TaskStatus, Trend, now
from tests.unit.replicator.test_status import FULL

STATUS = replace(FULL, trend=Trend(5.0, (0.0, 50.0, 99.5), (None, 1.0, 0.5)))
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "div", "span", "section"),
    *("code", "ul", "li", "table", "tr", "th", "td", "figure", "figcaption", "svg", "polyline"),
}


class Page(HTMLParser):
    """The elements and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside != "style":
            self.text += data


def test_what_needs_the_operator_stands_in_front() -> None:
    text = Page(status_page(STATUS)).text
    order = [
        text.index(part) for part in ("paused", "target.duplicate_key", "lock d.t:3", "writer")
    ]
    assert order == sorted(order)
    for part in (
        *("two shards carry the key [7]", "replicator resume orders", "target d.u is blocked"),
        *("target d.v waits for d.u", "source c is paused", "ADD d INT", "b: s.t2"),
        *("bin.000001:900", "ALTER TABLE", "b is away", "rows/s 100, at most 100", "lag 0.5 s"),
    ):
        assert part.replace(" is blocked", "") in text


def hostile(value: Any, text: str) -> Any:
    """The same status with a text of somebody else's in every place that takes one."""
    if is_dataclass(value) and not isinstance(value, type):
        return replace(
            value,
            **{
                field.name: hostile(getattr(value, field.name), text)
                for field in fields(value)
                if field.name not in ("state", "kind", "position", "saved_position")
            },
        )
    if isinstance(value, tuple):
        return tuple(hostile(item, text) for item in value)
    return text if isinstance(value, str) and not isinstance(value, datetime) else value


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "</title></style><script>",
        "`replicator resume <b>`",
        "&lt;i&gt; &amp;",
        "\x1b[2J\u202e\x00\ud800",
    ],
    ids=["script", "attribute", "end tags", "command", "entities", "controls"],
)
def test_what_servers_say_is_text(text: str) -> None:
    page = Page(status_page(hostile(STATUS, text)))
    assert {tag for tag, _ in page.tags} <= TAGS
    assert not [name for _, held in page.tags for name in held if name.startswith("on")]
    assert not [held for _, held in page.tags if "src" in held or "href" in held]
    status_page(hostile(STATUS, text)).encode()
    if "\x1b" not in text and "`" not in text:
        assert page.text.count(text) > 20
    else:
        assert "\x1b" not in page.text


def test_an_open_statement_and_shards_that_differ_are_told() -> None:
    lock = replace(FULL.locks[0], reason="a: s.t1: it renames b", shard="a: s.t1", rows_held=1)
    differing = DifferingTarget("d.t", (DifferingShard("a", "s.t2", ("lacks column c",)),), ("n",))
    page = status_page(replace(FULL, locks=(lock,), differing=(differing,)))
    for expected in (
        "a: s.t1: it renames b", "1 row event held", "shards of d.t differ",
        "lacks column c: a: s.t2", "notice: n",
    ):  # fmt: skip
        assert expected in page, expected


def test_many_targets_are_cut_those_with_work_in_front() -> None:
    targets = tuple(
        TargetStatus(f"d.t{n:04}", rows_per_second=float(n == 900)) for n in range(1000)
    )
    text = Page(status_page(replace(STATUS, targets=targets))).text
    assert text.index("d.t0900") < text.index("d.t0000")
    assert "d.t0999" not in text
    assert f"and {1000 - MOST_TARGETS} more targets" in text


def test_a_task_that_starts_has_a_page() -> None:
    assert "starting" in Page(status_page(TaskStatus("orders", "starting", now(), 7))).text
