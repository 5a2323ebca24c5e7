"""Tasks that an earlier release has stopped in the middle of their work go on with this version."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.releases.estate import SCHEMAS, SavedEstate, estate
from tests.releases.save import ROOT, running
from tests.support.tasks.processes import TaskProcess

RELEASES = [path for path in sorted((ROOT / "tests/releases").iterdir()) if path.name[0].isdigit()]
ORDERS = ("a.orders_1", "a.orders_2", "b.orders_1")
USERS = ("a.users_1", "b.users_1")
QUICK = {"small": {"rows": 500, "threads": 4}}
"""The chunks of the copy that goes on; those of before were small, to be stopped among them."""


@pytest.mark.slow
@pytest.mark.parametrize("release", [pytest.param(path, id=path.name) for path in RELEASES])
def test_tasks_of_a_release_go_on_to_equality(release: Path) -> None:
    with estate(release, restored=True) as found:
        with going_on(found, "locked") as task:
            # The lock of before: two shards have still to bring the column.
            found.on("a", "l", "ALTER TABLE orders_2 ADD d INT NOT NULL DEFAULT 4")
            found.on("b", "l", "ALTER TABLE orders_1 ADD d INT NOT NULL DEFAULT 4")
            # The ghost of before takes its table's place.
            found.on(
                "a",
                "l",
                "REPLACE INTO _users_1_gho (id, name, n) SELECT id, name, n FROM users_1",
                "RENAME TABLE users_1 TO _users_1_del, _users_1_gho TO users_1",
                "UPDATE users_1 SET phone = '7' WHERE id < 5",
            )
            found.on("b", "l", "ALTER TABLE users_1 ADD phone VARCHAR(20)")
            equal(found, task, "locked", orders=ORDERS, users=USERS)
            held = "SELECT COUNT(*) FROM ml.orders WHERE id IN (100, 101)"
            assert found.target.execute(held) == ((2,),)
        with going_on(found, "uncoordinated") as task:
            # The target has had both of these changes; c is another one.
            found.on("a", "u", "ALTER TABLE orders_2 ADD c INT DEFAULT 3")
            found.on("a", "u", "ALTER TABLE orders_2 MODIFY n BIGINT, ADD e INT")
            found.on("b", "u", "ALTER TABLE orders_1 MODIFY n BIGINT, ADD e INT")
            equal(found, task, "uncoordinated", orders=ORDERS)
        with going_on(found, "copying", mydumpers=QUICK) as task:
            found.on("a", "c", "ALTER TABLE orders_2 MODIFY n VARCHAR(20)")
            found.on("b", "c", "ALTER TABLE orders_1 MODIFY n VARCHAR(20)")
            equal(found, task, "copying", orders=ORDERS, users=USERS)


@contextmanager
def going_on(found: SavedEstate, name: str, **more: Any) -> Iterator[TaskProcess]:
    """The task, once it has started from what is saved, with a row more in each shard."""
    with running(found, name, **more) as task:
        task.until_state(name, "running")
        schema = SCHEMAS[name]
        for number, shard in enumerate((*ORDERS, *USERS)):
            source, table = shard.split(".")
            row = f"INSERT INTO {table} (id, name) VALUES ({5_000_000 + number}, 'new')"
            found.on(source, schema, row, f"UPDATE {table} SET name = 'changed' WHERE id % 5 = 0")
        yield task


def equal(found: SavedEstate, task: TaskProcess, name: str, **targets: tuple[str, ...]) -> None:
    """Wait until each target has the rows of its shards."""
    for target, shards in targets.items():
        looks = partial(found.is_equal, SCHEMAS[name], target, *shards)
        task.until(looks, f"equality of {target}")
