"""The status on a screen: all that needs the operator is seen, and nothing scrolls away."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from replicator.status import Fault, SourceStatus, TargetStatus, TaskStatus, Trend, now
from replicator.terminal.status import StatusScreen
from tests.unit.replicator.test_status import FULL

AWAY = (
    "retrying: (2013, \"Lost connection to MySQL server at 'reading initial communication packet',"
    ' system error: 104 (the server closed the connection before it had said who it is)")'
)
PLACE = "mysql-bin.000123:104857600"
SOURCES = (
    SourceStatus("shard-eu-01", "reading", PLACE, saved_position=PLACE, lag_seconds=1.5),
    SourceStatus("shard-eu-02", AWAY, PLACE, saved_position=PLACE, lag_seconds=81.0),
)
TARGETS = tuple(
    TargetStatus(f"shop.orders_{n}", 4, inserted=10**n, rows_per_second=float(n)) for n in range(4)
)
TREND = Trend(5.0, (1.0, 2.0, 3.0), (1.0, None, 2.0))
PAUSED = replace(FULL, blocked=(), copy=None, sources=SOURCES, targets=TARGETS, trend=TREND)
SIZES = ((80, 24), (200, 50), (80, 12), (40, 10))


def screen(status: TaskStatus, width: int, height: int) -> list[str]:
    out = io.StringIO()
    console = Console(width=width, height=height, file=out, force_terminal=True, color_system=None)
    console.print(StatusScreen(status))
    shown = [line.rstrip() for line in out.getvalue().splitlines()]
    assert len(shown) <= height, "\n".join(shown)
    assert max(map(len, shown)) <= width
    return shown


@pytest.mark.parametrize(("width", "height"), SIZES[:2])
def test_a_fault_a_lock_and_a_wrapped_error_fit(width: int, height: int) -> None:
    shown = screen(PAUSED, width, height)
    text = "\n".join(shown)
    places = [text.index(told) for told in ("paused", "two shards", "lock d.t:3", "shard-eu-02")]
    assert places == sorted(places), "what needs the operator stands on top"
    assert "• remove one" in text
    assert "retrying" in text
    assert "replicator unlock-ddl-lock orders d.t:3 --owner b" in text
    assert ("1 reading, 1 retrying" in text) == (width == 80), "the rest gives way to it"
    assert "shop.orders_3" in text or "targets 4, 6 rows/s" in text


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("many", [1, 90])
def test_nothing_makes_a_screen_overflow(width: int, height: int, many: int) -> None:
    fault = Fault("x.y", "a long\nstory, " * 30, "source s", ("a way out " * 20,) * many, now())
    for status in (
        replace(FULL, trend=TREND),
        replace(PAUSED, error=fault),
        replace(PAUSED, locks=PAUSED.locks * many, error=None),
        replace(PAUSED, sources=SOURCES * many, targets=TARGETS * many, locks=()),
        replace(FULL, sources=SOURCES * many, targets=TARGETS * many),
        TaskStatus("orders", "running", now(), 1, sources=SOURCES * many, targets=TARGETS * many),
    ):
        shown = screen(status, width, height)
        assert shown[0].startswith("task orders")
        if status.error is fault:
            assert "story" in "\n".join(shown)


def test_what_is_cut_is_said_where_to_find() -> None:
    fault = Fault("x.y", "why " * 900, "", ("resume",), now())
    shown = screen(replace(PAUSED, error=fault), 80, 24)
    assert len(shown) == 24
    assert shown[-1] == "all of it: replicator status orders --all"
    assert shown[1].startswith("lock d.t:3  conflict"), "the other one is not pushed out"
    assert "retrying" not in "\n".join(shown)


def test_many_sources_are_counted_and_those_that_are_away_are_told() -> None:
    status = TaskStatus("orders", "running", now(), 1, sources=SOURCES * 30, targets=TARGETS)
    shown = screen(status, 80, 24)
    assert "sources 30 reading, 30 retrying, lag ≤ 1 min 21 s" in shown
    assert sum(line.startswith("shard-eu-02: retrying: (2013") for line in shown) == 4
    assert "and 26 more sources like these" in shown
    assert any("shop.orders_3" in line for line in shown)


def test_lines_of_a_statement_are_told_in_one() -> None:
    lock = replace(FULL.locks[0], ddl="ALTER TABLE t\n  ADD a INT,\n  ADD b INT")
    shown = screen(replace(PAUSED, locks=(lock,) * 3), 80, 24)
    assert sum(line.startswith("lock d.t:3") for line in shown) == 3
