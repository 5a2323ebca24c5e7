from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType

from replicator.status import LockSource, SourceStatus, TargetStatus, TaskStatus, Trend, now
from replicator.terminal.fitting_table import TextColumn, fitting
from replicator.terminal.locks import render_locks
from replicator.terminal.status import StatusScreen, render, render_tasks
from tests.unit.replicator.test_status import FULL

PLACE = "mysql-bin.000123:104857600"
SOURCES = (
    SourceStatus("shard-eu-01", "reading", position=PLACE, saved_position=PLACE, lag_seconds=1.5),
    SourceStatus("shard-eu-02", "retrying: the server has gone away (2006)", position=PLACE),
)


def targets(count: int) -> tuple[TargetStatus, ...]:
    return tuple(
        TargetStatus(
            f"warehouse.customer_orders_{number}",
            inserted=1_000_000 * number,
            rows_per_second=float(number),
            ddl="ALTER TABLE `warehouse`.`customer_orders` ADD note TEXT" if number == 3 else "",
        )
        for number in range(count)
    )


def lines(shown: RenderableType, width: int, height: int) -> list[str]:
    out = io.StringIO()
    Console(width=width, height=height, file=out).print(shown)
    return out.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("count", [2, 30])
def test_names_and_places_are_told_whole(width: int, count: int) -> None:
    status = replace(FULL, sources=SOURCES, targets=targets(count))
    shown = lines(render(status, everything=True), width, 24)
    assert max(map(len, shown)) <= width
    words = {word for line in shown for word in line.split()}
    assert {PLACE, "shard-eu-01", "shard-eu-02"} <= words
    assert {target.target for target in status.targets} <= words


def test_the_fault_and_the_lock_come_first() -> None:
    text = "\n".join(lines(render(replace(FULL, targets=targets(20))), 80, 24))
    places = [
        text.index(word)
        for word in ("two shards carry", "lock d.t:3", "copying", "customer_orders_0")
    ]
    assert places == sorted(places)


def test_of_many_targets_only_those_with_something_odd_are_listed() -> None:
    found = list(targets(311))
    found[7] = replace(found[7], missing=2)
    sources = tuple(replace(SOURCES[0], source=f"s{number}") for number in range(96))
    status = TaskStatus("orders", "running", now(), 1, sources=sources, targets=tuple(found))
    shown = lines(render(status), 120, 24)
    assert len(shown) < 20
    text = "\n".join(shown)
    assert [n for n in range(311) if f"orders_{n} " in text] == [3, 7]
    assert "targets 311, " in text
    assert "sources 96 reading" in text
    assert shown[-1] == "all targets and sources: replicator status orders --all"
    assert len(lines(render(status, everything=True), 120, 24)) > 400


def test_many_locks_and_blocked_parts_are_lines() -> None:
    locks = tuple(replace(FULL.locks[0], id=f"d.t:{number}") for number in range(40))
    blocked = tuple(replace(FULL.blocked[0], name=f"d.t{number}") for number in range(40))
    status = replace(FULL, state="running", error=None, locks=locks, blocked=blocked)
    shown = lines(render(status), 120, 24)
    for number in range(40):
        assert sum(f"lock d.t:{number} " in line for line in shown) == 1
        assert sum(f"target d.t{number} is blocked" in line for line in shown) == 1
    assert sum(line.startswith("lock d.t:") and "conflict for" in line for line in shown) == 35
    assert len(shown) < len(lines(render(status, everything=True), 120, 24)) / 3


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 50)])
def test_a_screen_tells_the_busiest_of_many_targets(width: int, height: int) -> None:
    status = TaskStatus("orders", "running", now(), 1, sources=SOURCES, targets=targets(90))
    shown = lines(StatusScreen(status), width, height)
    assert len(shown) <= height
    words = [
        line.split()[0] for line in shown if "customer_orders_" in line.partition("  ")[0] + line
    ]
    # The one with a schema change is in front, then those with the most rows.
    assert words[:3] == [f"warehouse.customer_orders_{number}" for number in (3, 89, 88)]
    assert f"and {90 - len(words)} more targets" in shown[-1]


def test_the_highest_rank_goes_first() -> None:
    columns = [
        TextColumn("a", ["xxxx"]),
        TextColumn("b", ["xxxx"], 2),
        TextColumn("c", ["xxxx"], 1),
    ]
    headings = [[c.heading for c in fitting(columns, width)] for width in (16, 15, 9, 1)]
    assert headings == [["a", "b", "c"], ["a", "c"], ["a"], ["a"]]


LONG = "retrying: (2003, \"Can't connect to MySQL server on 'db7.example.internal'\")"


def test_a_sentence_that_does_not_fit_is_told_below_its_table() -> None:
    sources = (replace(SOURCES[0], state=LONG), SOURCES[1])
    shown = lines(render(TaskStatus("orders", "running", now(), 1, sources=sources)), 80, 24)
    [row] = [line for line in shown if line.startswith(" shard-eu-01 ")]
    assert "retrying: " in row
    assert "…" in row
    assert f"shard-eu-01: {LONG}" in " ".join(" ".join(shown).split())
    wide = lines(render(TaskStatus("orders", "running", now(), 1, sources=sources)), 200, 24)
    assert sum(LONG in line for line in wide) == 1


@pytest.mark.parametrize("width", [60, 80, 200])
def test_only_names_that_are_wider_than_the_terminal_are_broken(width: int) -> None:
    name = "warehouse_of_the_shop." + "orders_" * 9
    found = (TargetStatus(name, 3, inserted=1_234_567, ddl="ALTER TABLE x ADD COLUMN y INT"),)
    status = TaskStatus("orders", "running", now(), 1, sources=SOURCES, targets=found)
    shown = lines(render(status), width, 24)
    assert max(map(len, shown)) <= width
    text = " ".join(shown)
    for word in (" inserted", " 1\N{NARROW NO-BREAK SPACE}234\N{NARROW NO-BREAK SPACE}567 ", PLACE):
        assert word in text, word
    assert name in "".join("".join(shown).split())


@pytest.mark.parametrize("width", [80, 200])
def test_the_list_of_tasks_tells_faults_in_whole_lines(width: int) -> None:
    tasks = [
        replace(FULL, task="merge-the-orders-of-all-shops-of-the-north", blocked=()),
        replace(FULL, task="customers", state="running", error=None),
        TaskStatus("x", "running", now(), 4711),
    ]
    shown = lines(render_tasks(tasks), width, 24)
    assert max(map(len, shown)) <= width
    text = " ".join(" ".join(shown).split())
    for told in (
        "paused",
        "target.duplicate_key",
        "merge-the-orders-of-all-shops-of-the-north: two shards carry the key [7]",
        "blocked (3 parts)",
        "customers: two shards carry the key [7]",
        "customers: blocked: d.v, c",
    ):
        assert told in text, told


def test_a_screen_that_is_too_small_tells_one_fault_in_whole_and_of_the_others_a_line() -> None:
    shown = lines(StatusScreen(replace(FULL, targets=targets(30))), 80, 24)
    text = "\n".join(shown)
    assert "• remove one" in text, "the remedies of the fault"
    for line in ("target d.u is blocked: two shards", "target d.v is blocked: waits for d.u",
                 "source c is blocked: paused", "lock d.t:3  conflict for "):  # fmt: skip
        assert sum(told.startswith(line) for told in shown) == 1, line
    assert "all of it: replicator status orders" in text
    large = "\n".join(lines(StatusScreen(replace(FULL, targets=targets(2))), 200, 90))
    assert "all of it:" not in large
    assert "unlock-ddl-lock orders d.t:3" in large


def test_many_blocked_parts_leave_room_on_the_screen() -> None:
    parts = tuple(replace(FULL.blocked[0], name=f"d.u{number}") for number in range(40))
    status = replace(FULL, error=None, locks=(), blocked=parts, targets=targets(30))
    shown = lines(StatusScreen(status), 80, 24)
    assert any("and 35 more like these" in line for line in shown)
    assert sum("is blocked" in line for line in shown) == 5


def test_a_lock_of_very_many_shards_tells_some() -> None:
    missing = tuple(f"s.t{number}" for number in range(60))
    lock = replace(FULL.locks[0], sources=(LockSource("b", False, missing),))
    text = " ".join(" ".join(lines(render_locks([lock]), 80, 24)).replace("│", "").split())
    assert "missing b: s.t0, s.t1, s.t2, s.t3, s.t4 and 55 more" in text
    assert "s.t5" not in text
    whole = "\n".join(lines(render_locks([lock], everything=True), 400, 24))
    assert "s.t59" in whole


def test_a_lock_of_very_many_sources_counts_those_that_are_ready() -> None:
    sources = (
        *(LockSource(f"r{number}", True) for number in range(60)),
        *(LockSource(f"m{number}", False, ("s.t1", "s.t2")) for number in range(36)),
    )
    lock = replace(FULL.locks[0], sources=sources, conflict=None)
    shown = lines(render_locks([lock]), 120, 24)
    text = "\n".join(shown)
    assert "missing m0: s.t1, s.t2; m1: s.t1, s.t2; m2: s.t1 and 67 more" in text
    assert "60 of 96 sources ready; show-ddl-locks --all has all sources and shards" in text
    assert len(shown) < 20


@pytest.mark.parametrize("width", [80, 200])
def test_the_last_minutes_are_a_line_of_curves(width: int) -> None:
    rates = tuple(float(point * 1000) for point in range(60))
    lags = (None, *(point * 61.0 for point in range(59)))
    fault = replace(FULL, blocked=(), locks=(), copy=None)
    one_of_each = replace(fault, sources=SOURCES, targets=targets(30))
    status = replace(one_of_each, trend=Trend(5.0, rates, lags))
    shown = lines(StatusScreen(status), width, 24)
    [curves] = [line for line in shown if line.startswith("rows/s ▁")]
    assert curves.count("█ ≤") == 2, "the newest point of both is the highest"
    assert "59\N{NARROW NO-BREAK SPACE}000" in curves
    assert "58 min 58 s" in curves
    assert curves.endswith("5 min")
    assert max(map(len, shown)) <= width
    # Before there are some points, there is no line.
    one = replace(FULL, trend=Trend(5.0, (1.0,), (None,)))
    assert not [line for line in lines(StatusScreen(one), width, 24) if "≤" in line]
