from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType

from replicator.status import SourceStatus, TargetStatus, TaskStatus, now
from replicator.terminal.fitting_table import Column, fitting
from replicator.terminal.status import Screen, render
from tests.unit.test_status import FULL

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
    shown = lines(render(status), width, 24)
    assert max(map(len, shown)) <= width
    words = {word for line in shown for word in line.split()}
    assert {PLACE, "shard-eu-01", "shard-eu-02"} <= words
    assert {target.target for target in status.targets} <= words


def test_the_fault_and_the_lock_come_first() -> None:
    text = "\n".join(lines(render(replace(FULL, targets=targets(30))), 80, 24))
    places = [
        text.index(word)
        for word in ("two shards carry", "lock d.t:3", "copying", "customer_orders_0")
    ]
    assert places == sorted(places)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 50)])
def test_a_screen_tells_the_busiest_of_many_targets(width: int, height: int) -> None:
    status = TaskStatus("orders", "running", now(), 1, sources=SOURCES, targets=targets(90))
    shown = lines(Screen(status), width, height)
    assert len(shown) <= height
    words = [
        line.split()[0] for line in shown if "customer_orders_" in line.partition("  ")[0] + line
    ]
    # The one with a schema change is in front, then those with the most rows.
    assert words[:3] == [f"warehouse.customer_orders_{number}" for number in (3, 89, 88)]
    assert f"and {90 - len(words)} more targets" in shown[-1]


def test_a_screen_with_a_fault_still_tells_some_targets() -> None:
    shown = lines(Screen(replace(FULL, targets=targets(90))), 80, 24)
    assert sum("warehouse.customer_orders_" in line for line in shown) >= 3


def test_the_highest_rank_goes_first() -> None:
    columns = [Column("a", ["xxxx"]), Column("b", ["xxxx"], 2), Column("c", ["xxxx"], 1)]
    headings = [[c.heading for c in fitting(columns, width)] for width in (16, 15, 9, 1)]
    assert headings == [["a", "b", "c"], ["a", "c"], ["a"], ["a"]]
