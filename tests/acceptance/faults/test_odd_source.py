"""A source that gives answers which can't be understood is waited for; the others go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.damaging_proxy import DAMAGES, OddServer
from tests.support.tasks.long_task import LongTask
from tests.support.tasks.shards import Shards


@pytest.fixture
def task(shards: Shards, tmp_path: Path) -> Iterator[LongTask]:
    task = LongTask(shards, tmp_path)
    yield task
    task.end()


@pytest.mark.parametrize(
    ("number", "damage", "anew"),
    [
        # The byte ff in answer to the login; a look-up whose answer is none, when the task begins.
        pytest.param(1, "ff", False, id="login"),
        pytest.param(1, "ff", True, id="login-at-start", marks=pytest.mark.slow),
        pytest.param(0, "random", False, id="greeting", marks=pytest.mark.slow),
        pytest.param(18, "nonsense", True, id="look-up-at-start", marks=pytest.mark.slow),
        pytest.param(18, "cut", False, id="look-up", marks=pytest.mark.slow),
    ],
)
def test_the_others_go_on_until_it_answers_properly(
    task: LongTask, number: int, damage: str, anew: bool
) -> None:
    shards, name = task.shards, task.name
    with OddServer(shards.sources["a"].port, DAMAGES[damage]).listening() as odd:
        task.values["sources"][0]["from"]["port"] = odd.port
        shards.change(rows=20)
        task.assert_equal()
        process = task.task.process
        if anew:
            assert task.task.cli("pause", name).returncode == 0
            task.task.until_state(name, "paused")
        odd.number = number
        odd.end_all()
        if anew:
            task.resume()
        task.task.until(lambda: odd.damaged > 1, "odd answers")
        shards.sources["b"].execute(f"INSERT INTO {name}.bag VALUES (-77, 'of the sound one')")
        there = f"SELECT 1 FROM {name}.bag WHERE a = -77"
        task.task.until(lambda: bool(shards.target.execute(there)), "rows of the other source")
        odd.number = -1
        odd.end_all()
        shards.change(rows=20)
        task.assert_equal()
        assert task.task.process is process
        assert not task.logged("task.failed")
        lost = task.logged("source.lost") + task.logged("source.unavailable")
        assert lost
