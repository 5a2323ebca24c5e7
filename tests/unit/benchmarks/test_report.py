"""What the benchmark measures, and the table that shows it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import nullcontext

import pytest

from benchmarks.catching_up import CatchUp
from benchmarks.errors import BenchmarkError
from benchmarks.latency import percentile
from benchmarks.processes import (
    OthersWatch,
    ProcessTreeWatch,
    descendants,
    machine_seconds,
    tree_seconds,
)
from benchmarks.report import content, costs, of_a_run, table
from benchmarks.row import Line, Measured, Row
from benchmarks.rows import ROWS
from benchmarks.sizes import TINY, changed


@pytest.mark.parametrize(
    ("share", "value"), [(0.5, 50.0), (0.95, 95.0), (0.951, 96.0), (1.0, 100.0)]
)
def test_percentile_is_the_nearest_rank(share: float, value: float) -> None:
    assert percentile([float(n) for n in range(100, 0, -1)], share) == value


def test_watch_counts_the_cpu_time_of_children() -> None:
    spin = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"
    with ProcessTreeWatch(os.getpid()) as watch:
        child = subprocess.Popen(
            [sys.executable, "-c", spin], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        with child:
            assert child.stdout is not None
            child.stdout.readline()
            assert child.pid in descendants(os.getpid())
            watch.sample()
        usage = watch.usage
    assert usage.cpu_workers >= 0.25
    assert usage.tree > 0
    assert usage.driver > 0


@pytest.fixture
def no_descendants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of other tests may end meanwhile, and what they took is gone with them."""
    monkeypatch.setattr("benchmarks.processes.descendants", lambda root: [root])


@pytest.mark.usefixtures("no_descendants")
def test_the_time_of_children_that_have_ended_is_counted() -> None:
    before = tree_seconds(os.getpid())
    spin = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-c", spin], check=True)
    assert tree_seconds(os.getpid()) - before >= 0.25


@pytest.mark.usefixtures("no_descendants")
def test_the_time_of_this_process_is_not_that_of_others() -> None:
    machine, own = machine_seconds(), time.process_time()
    with OthersWatch() as others:
        while time.process_time() - own < 0.5:
            pass
    assert others.cpu <= machine_seconds() - machine - 0.4


def test_rows_and_their_lines_have_names_of_their_own() -> None:
    names = [row.name for row in ROWS]
    keys = [line.key for row in ROWS for line in row.lines]
    assert len(set(names)) == len(names)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("line", [line for row in ROWS for line in row.lines], ids=lambda n: n.key)
def test_a_goal_is_better_than_its_floor(line: Line) -> None:
    assert line.reaches(line.goal, line.floor)
    assert not line.reaches(line.floor, line.goal)


FAST = Line("fast", "inserts", "loading", 1.0, 0.6)
LATE = Line("late", "latency", "-", 0.02, 0.06, "s", lower_is_better=True)


def figures(fast: list[float], late: list[float], raw: dict[str, object]) -> dict[str, object]:
    row = Row("one", (FAST, LATE), lambda _: nullcontext(lambda: Measured({}, {})))
    runs = [
        of_a_run(Measured({"fast": f, "late": n}, raw), 0.5)
        for f, n in zip(fast, late, strict=True)
    ]
    return content([row], {"one": runs})


def test_the_table_shows_medians_beside_goal_and_floor_and_marks_those_below_it() -> None:
    shown = table(figures([0.7, 0.4, 0.5], [0.01, 0.05, 0.03], {})).splitlines()
    times = "\N{MULTIPLICATION SIGN}"
    assert shown[2] == (
        f"| inserts | loading | **0.50 {times}** | 1.00 {times} | 0.60 {times}"
        " | 0.70, 0.40, 0.50 | 0.5 |"
    )
    assert shown[3] == ("| latency | - | 0.030 s | 0.020 s | 0.060 s | 0.010, 0.050, 0.030 | 0.5 |")


def test_costs_are_those_of_a_million_rows_beside_what_others_take() -> None:
    task = CatchUp(500_000, 5.0, 500.0, 9, 1.0, 0.1, 2.0, 3.0, 250.0, 1 << 30, 1 << 20).raw()
    load_data = {"seconds": 250.0, "cpu": 4.0}
    shown = costs(figures([1.0], [1.0], {"task": task, "load_data": load_data})).splitlines()
    assert shown[2] == "| one | 1,000 | 12.2 | 2.0 | 0.2 | 4.0 | 6.0 | 1,024 | 1 | 0.5 |"
    assert shown[3] == "| one: load_data | 2,000 | 8.0 |  |  |  |  |  |  |  |"


def test_sizes_are_changed_by_name() -> None:
    made = changed(TINY, {"order_rows": 5, "targets": [1, 2]})
    assert (made.order_rows, made.targets, made.blobs) == (5, (1, 2), TINY.blobs)
    with pytest.raises(BenchmarkError, match="no_such"):
        changed(TINY, {"no_such": 1})
