"""Foreign keys that the storage engine of the shards ignores."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles

COLUMNS = "id INT PRIMARY KEY, p INT"
KEY = "FOREIGN KEY (p) REFERENCES p_{0} (id) ON DELETE CASCADE"


@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
async def test_the_target_keeps_the_rows_that_the_shards_keep(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, mode: str
) -> None:
    """A table counts its foreign keys from the moment when it gets another engine."""
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = mode
    merging.create("p", "(id INT PRIMARY KEY, v INT)", shards=2)
    merging.shards("c", 2)
    merging.shards("d", 2)
    async with merging.running():
        for n in (1, 2):
            merging.do(
                f"CREATE TABLE c_{n} ({COLUMNS}) ENGINE=MyISAM",
                f"ALTER TABLE c_{n} ADD {KEY.format(n)}",
                f"CREATE TABLE d_{n} ({COLUMNS}, {KEY.format(n)}) ENGINE=MyISAM",
            )
        for n in (1, 2):
            merging.do(
                f"INSERT INTO p_{n} VALUES ({n}, 1)",
                f"INSERT INTO c_{n} VALUES ({n}, {n})",
                f"INSERT INTO d_{n} VALUES ({n}, {n})",
                f"DELETE FROM p_{n}",
                f"INSERT INTO p_{n} VALUES ({n}, 2)",
            )
        await settles(lambda: len(merging.on(merging.target, "SHOW TABLES")), 3)
        await settles(merging.differences, {})
        for n in (1, 2):
            merging.do(f"ALTER TABLE c_{n} ENGINE=InnoDB", f"ALTER TABLE d_{n} ENGINE=InnoDB")
        for n in (1, 2):
            merging.do(f"ALTER TABLE c_{n} ADD {KEY.format(n)}")
        await settles(lambda: "CASCADE" in shown(merging, "c"), True)
        for n in (1, 2):
            merging.do(f"DELETE FROM p_{n}")
        await settles(merging.differences, {})
    assert "FOREIGN" not in shown(merging, "d")
    assert shown(merging, "c").count("KEY `") == shown(merging, "d").count("KEY `") == 1


def shown(merging: Merging, table: str) -> str:
    return str(merging.on(merging.target, f"SHOW CREATE TABLE {table}")[0][1])
