"""What happens inside transactions: swaps, moves, chains of keys, and transactions of all kinds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.matrix import matrix
from tests.support.tasks.merging import Merging


def transaction(*statements: str) -> tuple[str, ...]:
    return ("BEGIN", *statements, "COMMIT")


def outside(*statements: str) -> tuple[str, ...]:
    """Those that mean the same without a transaction."""
    return tuple(s for s in statements if not s.startswith(("SAVEPOINT", "ROLLBACK")))


@matrix("rows")
async def test_unique_values_swap_inside_a_transaction(merging: Merging) -> None:
    merging.create("one", "(id INT PRIMARY KEY, v INT)")
    merging.create("two", "(id INT PRIMARY KEY, u INT NOT NULL, v INT, UNIQUE (u))")
    merging.create("named", "(id INT PRIMARY KEY, u VARCHAR(9), UNIQUE (u))", shards=2)
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO one_1 VALUES (1, 10), (2, 20), (3, 30)",
            "INSERT INTO two_1 VALUES (1, 10, 1), (2, 20, 2), (3, 30, 3)",
            "INSERT INTO named_1 VALUES (1, 'a'), (2, 'b')",
            "INSERT INTO named_2 VALUES (3, 'c'), (4, NULL), (5, NULL)",
        )
        await merging.check(generation)
        merging.do(
            *transaction(
                "UPDATE one_1 SET id = -1 WHERE id = 1",
                "UPDATE one_1 SET id = 1 WHERE id = 2",
                "UPDATE one_1 SET id = 2 WHERE id = -1",
            ),
            *transaction(
                "UPDATE two_1 SET u = -u",
                "UPDATE two_1 SET u = 40 + u",
            ),
            *transaction(
                "UPDATE named_1 SET u = NULL WHERE id = 1",
                "UPDATE named_1 SET u = 'A' WHERE id = 2",
                "UPDATE named_2 SET u = 'b' WHERE id = 3",
                "UPDATE named_1 SET u = 'C' WHERE id = 1",
            ),
        )
        await merging.check(generation)
        merging.do(
            *transaction("DELETE FROM two_1 WHERE id = 1", "UPDATE two_1 SET u = 30 WHERE id = 3"),
            *transaction("DELETE FROM two_1 WHERE id = 2", "INSERT INTO two_1 VALUES (2, 20, 9)"),
            *transaction(
                "UPDATE two_1 SET id = 7 WHERE id = 3", "INSERT INTO two_1 VALUES (3, 1, 1)"
            ),
        )
        await merging.check(generation)


@matrix("rows")
async def test_rows_move_between_shards(merging: Merging) -> None:
    merging.create("t", "(id INT PRIMARY KEY, v INT)", shards=3)
    merging.create("u", "(id INT PRIMARY KEY, k INT NOT NULL UNIQUE)", shards=2)
    merging.create("bag", "(v INT)", shards=2)
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO t_1 VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)",
            "INSERT INTO u_1 VALUES (1, 1), (2, 2)",
            "INSERT INTO bag_1 VALUES (1), (1)",
        )
        await merging.check(generation)
        merging.do(
            *transaction("INSERT INTO t_2 VALUES (1, 1)", "DELETE FROM t_1 WHERE id = 1"),
            *transaction("DELETE FROM t_1 WHERE id = 2", "INSERT INTO t_2 VALUES (2, 20)"),
            *transaction(
                "INSERT INTO t_2 VALUES (3, 30)",
                "INSERT INTO t_3 SELECT * FROM t_2 WHERE id = 3",
                "DELETE FROM t_1 WHERE id = 3",
                "DELETE FROM t_2 WHERE id = 3",
                "UPDATE t_3 SET v = v + 1 WHERE id = 3",
            ),
            # There and back again, and on under another key.
            *transaction(
                "INSERT INTO t_2 SELECT * FROM t_1 WHERE id = 4",
                "DELETE FROM t_1 WHERE id = 4",
                "INSERT INTO t_1 SELECT * FROM t_2 WHERE id = 4",
                "DELETE FROM t_2 WHERE id = 4",
            ),
            *transaction("INSERT INTO t_2 VALUES (50, 5)", "DELETE FROM t_1 WHERE id = 5"),
            *transaction("INSERT INTO u_2 VALUES (1, 1)", "DELETE FROM u_1 WHERE id = 1"),
            *transaction("INSERT INTO u_2 VALUES (20, 2)", "DELETE FROM u_1 WHERE id = 2"),
            *transaction("INSERT INTO bag_2 VALUES (1)", "DELETE FROM bag_1 LIMIT 1"),
        )
        await merging.check(generation)


@matrix("rows", broad=True)
async def test_keys_in_chains_and_statements_that_change_nothing(merging: Merging) -> None:
    merging.create("t", "(id INT PRIMARY KEY, v INT)")
    merging.create("old", "(id INT PRIMARY KEY, v INT) ENGINE=MyISAM",
                   target="(id INT PRIMARY KEY, v INT)")  # fmt: skip
    async with merging.running() as generation:
        merging.do(
            *(f"INSERT INTO {t}_1 VALUES (1, 1), (2, 2), (10, 10), (20, 20)" for t in ("t", "old"))
        )
        await merging.check(generation)
        mariadb = isinstance(merging.source, MariaDBServer)
        for t in ("t_1", "old_1"):
            # With GTIDs MySQL takes MyISAM tables only outside transactions.
            block = transaction if mariadb or t == "t_1" else outside
            merging.do(
                f"UPDATE {t} SET id = 3 WHERE id = 2",
                f"UPDATE {t} SET id = 2 WHERE id = 1",
                f"UPDATE {t} SET id = id + 1 ORDER BY id DESC",
                *block(
                    f"UPDATE {t} SET id = 100 WHERE id = 11",
                    f"UPDATE {t} SET id = 101, v = 7 WHERE id = 100",
                    f"UPDATE {t} SET id = 102 WHERE id = 101",
                    f"DELETE FROM {t} WHERE id = 21",
                    f"INSERT INTO {t} VALUES (21, 22)",
                ),
                f"REPLACE INTO {t} VALUES (21, 23)",
                f"INSERT INTO {t} VALUES (21, 1) ON DUPLICATE KEY UPDATE v = v + 1",
                # Nothing of this changes a row.
                f"UPDATE {t} SET v = v",
                f"UPDATE {t} SET v = 1 WHERE id = 99",
                f"DELETE FROM {t} WHERE id = 99",
                *block(f"SELECT * FROM {t} FOR UPDATE"),
                *block(f"INSERT INTO {t} VALUES (77, 7)", f"DELETE FROM {t} WHERE id = 77"),
                *block(f"UPDATE {t} SET v = v + 1 WHERE id = 3", "ROLLBACK"),
                # Half of a transaction undone.
                *block(
                    f"INSERT INTO {t} VALUES (200, 1)",
                    "SAVEPOINT half",
                    f"INSERT INTO {t} VALUES (201, 1)",
                    "ROLLBACK TO half",
                    f"INSERT INTO {t} VALUES (202, 1)",
                ),
            )
        await merging.check(generation)
        if mariadb:
            both = ("INSERT INTO t_1 VALUES ({0}, 1)", "INSERT INTO old_1 VALUES ({0}, 1)")
            merging.do(
                *transaction(*(s.format(300) for s in both)),
                *transaction(*(s.format(301) for s in both), "ROLLBACK"),
                *transaction(*(s.format(302) for s in reversed(both))),
            )
            await merging.check(generation)
        assert merging.on(merging.target, "SELECT id, v FROM t WHERE id IN (21, 102, 301)") == (
            (21, 24),
            (102, 7),
        )


@matrix("rows")
async def test_foreign_keys_of_the_target_do_not_get_in_the_way(merging: Merging) -> None:
    merging.create("parent", "(id INT PRIMARY KEY, v INT)")
    merging.create(
        "child",
        "(id INT PRIMARY KEY, parent INT)",
        target="(id INT PRIMARY KEY, parent INT,"
        " FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    )
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO child_1 VALUES (1, 1), (2, 2), (3, 99)",
            "INSERT INTO parent_1 VALUES (1, 1), (2, 2)",
        )
        await merging.check(generation)
        merging.do(
            "UPDATE parent_1 SET v = 5 WHERE id = 1",
            "DELETE FROM parent_1 WHERE id = 2",
            "UPDATE parent_1 SET id = 8 WHERE id = 1",
        )
        await merging.check(generation)


@pytest.mark.not_on_tidb("it has no triggers")
@pytest.mark.parametrize("loaded", [False, True], ids=["statements", "load data"])
async def test_triggers_of_the_target_fire_for_rows_as_they_are_written(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, loaded: bool
) -> None:
    """Triggers can't be switched off for a session: they see the net effect of a batch, in which
    a row that was overwritten may show as a delete and an insert. The rows of the table itself
    are exact."""
    merging = merging_from(mariadb_source)
    merging.create("t", "(id INT PRIMARY KEY, v INT)")
    merging.on(
        merging.target,
        "CREATE TABLE log (what VARCHAR(9), id INT)",
        "CREATE TRIGGER i AFTER INSERT ON t FOR EACH ROW INSERT INTO log VALUES ('insert', NEW.id)",
        "CREATE TRIGGER d AFTER DELETE ON t FOR EACH ROW INSERT INTO log VALUES ('delete', OLD.id)",
    )
    rows = 1000 if loaded else 5
    async with merging.running() as generation:
        merging.do(f"INSERT INTO t_1 SELECT seq, 0 FROM seq_1_to_{rows}")
        await merging.check(generation)
        merging.do("UPDATE t_1 SET v = 1", "DELETE FROM t_1 WHERE id % 2 = 0")
        await merging.check(generation)
    log = merging.on(merging.target, "SELECT COUNT(*) FROM log WHERE what = 'insert'")
    assert log[0][0] >= rows  # type: ignore[operator]
