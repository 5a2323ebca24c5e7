"""Shards that convert a column in sessions with other settings have other values afterwards."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles

COLUMNS = "(id INT PRIMARY KEY, a TIMESTAMP(6) NULL, b DATETIME(6))"
CHANGES = {
    "zone": ("MODIFY a DATETIME(6)", "SET time_zone='+00:00'", "SET time_zone='+02:00'"),
    "fraction": ("MODIFY b DATETIME", "SET sql_mode=''", "SET sql_mode='TIME_ROUND_FRACTIONAL'"),
}


def change(merging: Merging, kind: str) -> None:
    merging.do(
        "SET time_zone='+00:00'",
        *(f"INSERT INTO t_{n} VALUES ({n}, '2020-01-01 00:00:00.7', NOW(6))" for n in (1, 2)),
        "UPDATE t_1 SET b = a",
        "UPDATE t_2 SET b = a",
    )
    action, *sessions = CHANGES[kind]
    for number, session in enumerate(sessions, start=1):
        merging.do(session, f"ALTER TABLE t_{number} {action}")
    merging.do("INSERT INTO t_2 VALUES (3, '2020-01-01', '2020-01-01')")


@pytest.mark.parametrize("mode", ["pessimistic", "optimistic", ""])
@pytest.mark.parametrize("kind", CHANGES)
async def test_values_of_another_session_are_read_from_their_shard(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, kind: str, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = mode
    merging.create("t", COLUMNS, shards=2)
    async with merging.running() as generation:
        change(merging, kind)
        await settles(merging.differences, {})
        await merging.check(generation)


@pytest.mark.parametrize("source", ["mariadb_source", "mysql_source"])
async def test_the_default_of_a_derived_step_is_that_of_the_shard(
    merging_from: Callable[..., Merging], request: pytest.FixtureRequest, source: str
) -> None:
    """The task writes an ALTER of its own, from texts that it reads in UTC and without modes."""
    merging = merging_from(request.getfixturevalue(source))
    merging.more["shard-mode"] = "optimistic"
    merging.create("t", "(id INT PRIMARY KEY)", shards=2)
    session = "SET time_zone='+02:00', sql_mode='NO_BACKSLASH_ESCAPES,ANSI_QUOTES'"
    adds = (
        "ADD a TIMESTAMP NOT NULL DEFAULT '2020-01-01 00:00:00', ADD b VARCHAR(9) DEFAULT 'x\\y'",
        "ADD c TIMESTAMP NULL DEFAULT '2020-01-01 00:00:00' COMMENT 'it''s'",
    )
    async with merging.running() as generation:
        merging.do("INSERT INTO t_1 VALUES (1)", "INSERT INTO t_2 VALUES (2)")
        # So the target's structure is not that of the other shard.
        merging.do("ALTER TABLE t_2 ADD x INT", "INSERT INTO t_1 VALUES (3)")
        merging.do(session, *(f"ALTER TABLE t_1 {add}" for add in adds))
        merging.do("INSERT INTO t_1 (id) VALUES (4)", "INSERT INTO t_2 (id) VALUES (5)")
        merging.do(session, *(f"ALTER TABLE t_2 {add}" for add in adds))
        merging.do("ALTER TABLE t_1 ADD x INT")
        await merging.check(generation, {"t": "id, a, b, c, x"})
