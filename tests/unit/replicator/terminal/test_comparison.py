"""The outcome of a comparison, on a terminal and as a page."""

from __future__ import annotations

from datetime import UTC, datetime
from html.parser import HTMLParser
from io import StringIO

from rich.console import Console

from actors.comparing.comparison_page import CELLS, comparison_page
from replicator.mysql.names import TableName
from replicator.pipeline.compare.findings import (
    ColumnExample,
    ComparedRange,
    RowExample,
    TargetComparison,
)
from replicator.terminal.comparison import ComparisonBar, remarks, render_comparison, verdict

EVIL = "<script>alert('x')</script>"


def result() -> TargetComparison:
    found = TargetComparison(TableName("shop", "orders"), rows=3_000, different=30, held=2)
    found.ranges = [ComparedRange(1_000), ComparedRange(1_000, 30), ComparedRange(1_000, held=2)]
    found.by_shard = {"a: shop.orders_1": 3_000}
    values = ColumnExample("v", f"'{EVIL}'", "NULL")
    found.examples = [RowExample("different", "a: shop.orders_1", EVIL, (values,))]
    return found


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.classes: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.classes += [value or "" for name, value in attrs if name == "class" and tag == "i"]
        if tag != "meta":
            self.open.append(tag)
        assert not {name for name, _ in attrs} & {"src", "href", "onclick"}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(page: str) -> _Elements:
    found = _Elements()
    found.feed(page)
    assert not found.open
    return found


def test_the_page_shows_ranges_and_rows_and_runs_nothing() -> None:
    page = comparison_page("orders", [result()], datetime(2026, 1, 1, tzinfo=UTC))
    found = parsed(page)
    assert found.classes == ["equal", "differs", "held"]
    assert "script" not in found.names
    assert page.count("&lt;script&gt;") == 2
    assert "1 of 30 rows that differ" in page


def test_a_strip_has_room_for_any_number_of_ranges() -> None:
    many = result()
    many.ranges = [ComparedRange(10) for _ in range(10 * CELLS)]
    many.ranges[5].unsettled = 1
    found = parsed(comparison_page("orders", [many], datetime(2026, 1, 1, tzinfo=UTC)))
    assert len(found.classes) == CELLS
    assert found.classes[0] == "unsettled"


def test_rows_that_are_not_shown_are_counted() -> None:
    console = Console(file=StringIO(), width=200)
    console.print(render_comparison([result()], None))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "shop.orders: and 29 more different" in text
    assert "2 rows wait for a DDL lock" in text


def test_rows_that_no_lock_explains_are_not_called_right() -> None:
    found = TargetComparison(TableName("shop", "orders"), rows=3, held=2, held_events=0)
    assert verdict(found) == "incomplete"
    assert "holds no row event" in "".join(remarks(found))
    found.held_events = 1
    assert verdict(found) == "held"
    assert "which holds 1 row events" in "".join(remarks(found))


def test_the_bar_shows_how_far_it_is_and_why_it_pauses() -> None:
    console = Console(file=StringIO(), width=160, force_terminal=True)
    bar = ComparisonBar(console)
    bar.begin("shop.orders", 6_000)
    bar.show(result(), doubted=7)
    bar.pause("paused: source a has Threads_running=30, more than 25")
    bar.pause("")
    bar.close()
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "rows, 30 differ, 7 are looked at again" in text
    assert "Threads_running=30" in text
