"""Shards whose sessions are not strict cut values that do not fit; pessimistic targets follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import anyio
import pytest
from structlog.testing import capture_logs

from replicator.downstream.ddl import ddl_execution
from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.integration.reconciling.test_reconcile import until_reconciled
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import PATIENCE, settles

MergingFrom = Callable[..., Merging]
X = "(id INT PRIMARY KEY, s VARCHAR(40) NULL)"


def is_open(logs: Iterable[Mapping[str, object]], reason: str) -> bool:
    """Whether a statement is reported as open for a reason."""
    return any(one["event"] == "ddl.open" and reason in str(one["reason"]) for one in logs)


def shards_of(merging: Merging, shards: int) -> None:
    """Create shards with a row each that `NARROWED` cuts."""
    merging.mode, merging.more["shard-mode"] = "all", "pessimistic"
    merging.create("x", X, shards=shards)
    for number in range(1, shards + 1):
        merging.do(f"INSERT INTO x_{number} VALUES ({number}, 'a text of {number}')")


async def test_values_are_cut_as_in_the_shards(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    shards_of(merging, 2)
    merging.do("INSERT INTO x_1 VALUES (3, NULL)")
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do(*(f"ALTER TABLE x_{n} MODIFY s VARCHAR(6) NOT NULL" for n in (1, 2)))
        await settles(merging.differences, {})
        await until_reconciled(merging, generation)
    assert merging.on(merging.target, "SELECT s FROM x") == (("a text",), ("a text",), ("",))


async def test_values_are_cut_where_the_column_gets_another_name(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    shards_of(merging, 2)
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do(*(f"ALTER TABLE x_{n} CHANGE s r VARCHAR(6) NULL" for n in (1, 2)))
        await settles(merging.differences, {})
        await until_reconciled(merging, generation)
    assert merging.on(merging.target, "SELECT r FROM x") == (("a text",), ("a text",))


@pytest.mark.also_tidb(slow=True)
@pytest.mark.parametrize("mode", ["optimistic", "pessimistic"])
async def test_values_that_are_no_labels_any_more_are_empty(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    """Strict mode refuses to write the value that their rows have."""
    merging = merging_from(mariadb_source)
    merging.mode, merging.more["shard-mode"] = "all", mode
    merging.create("x", "(id INT PRIMARY KEY, k ENUM('a', 'b', 'c'))", shards=2)
    for n in (1, 2):
        merging.do(f"INSERT INTO x_{n} VALUES ({n}, 'a'), ({n + 2}, 'c')")
    async with merging.running() as generation:
        await merging.copied(generation)
        for n in (1, 2):
            merging.do(f"ALTER TABLE x_{n} MODIFY k ENUM('a', 'b')")
        await settles(merging.differences, {})
        await until_reconciled(merging, generation)


CUTS = {
    "text to number": ("c VARCHAR(30)", "'{n}xyz'", "MODIFY c INT"),
    "a removed label": ("c ENUM('a', 'b')", "'a'", "MODIFY c ENUM('b', 'c')"),
    "a removed member": ("c SET('x', 'y', 'z')", "'x,y,z'", "MODIFY c SET('x', 'z')"),
    "no sign": ("c INT", "-{n}", "MODIFY c INT UNSIGNED"),
    "charset": (
        "c VARCHAR(30) CHARACTER SET utf8mb4",
        "'{n} \u0141\u0143'",
        "CONVERT TO CHARACTER SET latin1",
    ),
    "another name": ("c VARCHAR(30)", "'abc{n}xyz'", "CHANGE c d VARCHAR(3)"),
}


@pytest.mark.parametrize("mode", ["optimistic", "pessimistic", ""])
async def test_values_are_cut_when_all_shards_have_cut_theirs(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    """No type takes the values of both structures, or a name changes: so the shards wait."""
    merging = merging_from(mariadb_source)
    merging.mode, merging.more["shard-mode"] = "all", mode
    tables = {f"y{number}": cut for number, cut in enumerate(CUTS.values())}
    for table, (column, value, _) in tables.items():
        merging.create(table, f"(id INT PRIMARY KEY, {column})", shards=2)
        for n in (1, 2):
            merging.do(f"INSERT INTO {table}_{n} VALUES ({n}, {value.format(n=n)})")
    async with merging.running() as generation:
        await merging.copied(generation)
        for n in (1, 2):
            for table, (_, _, change) in tables.items():
                merging.do("SET sql_mode = ''", f"ALTER TABLE {table}_{n} {change}")
                merging.do(f"INSERT INTO {table}_{n} (id) VALUES ({n + 2})")
        await settles(merging.differences, {})
        await until_reconciled(merging, generation)


@pytest.mark.also_tidb(slow=True)
@pytest.mark.parametrize("mode", ["optimistic", "pessimistic", ""])
@pytest.mark.parametrize("change", ["MODIFY id VARCHAR(3) NOT NULL", "MODIFY id INT NOT NULL"])
async def test_values_of_keys_are_cut_when_all_shards_have_cut_theirs(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str, change: str
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode, merging.more["shard-mode"] = "all", mode
    merging.create("x", "(id VARCHAR(20) PRIMARY KEY, v INT)", shards=2)
    for n in (1, 2):
        merging.do(f"INSERT INTO x_{n} VALUES ('1{n}0 rows', 1), ('2{n}0 rows', 2), ('3{n}0', 3)")
    async with merging.running() as generation:
        await merging.copied(generation)
        for n in (1, 2):
            merging.do(
                f"UPDATE x_{n} SET id = '4{n}0 rows' WHERE v = 1",
                "SET sql_mode = ''",
                f"ALTER TABLE x_{n} {change}",
                f"UPDATE x_{n} SET v = v + 10 WHERE id = '2{n}0'",
                f"UPDATE x_{n} SET id = '5{n}0' WHERE id = '4{n}0'",
                f"DELETE FROM x_{n} WHERE id = '3{n}0'",
                f"INSERT INTO x_{n} VALUES ('3{n}0', 4)",
            )
        await settles(merging.differences, {})
        await until_reconciled(merging, generation)
        merging.do("UPDATE x_1 SET v = v + 1", "DELETE FROM x_2 WHERE v = 4")
        await settles(merging.differences, {})


@pytest.mark.parametrize("mode", ["optimistic", "pessimistic", ""])
async def test_cut_keys_that_two_shards_have_are_refused(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    """The target keeps all rows; a statement that is not coordinated stays open."""
    merging = merging_from(mariadb_source)
    merging.mode, merging.more["shard-mode"] = "all", mode
    merging.create("x", "(id VARCHAR(20) PRIMARY KEY, v INT)", shards=2)
    for n in (1, 2):
        merging.do(f"INSERT INTO x_{n} VALUES ('row {n}', {n})")
    statements = (f"ALTER TABLE x_{n} MODIFY id CHAR(3)" for n in (1, 2))
    async with merging.running() as generation:
        await merging.copied(generation)
        if mode != "pessimistic":
            with capture_logs() as logs:
                merging.do("SET sql_mode = ''", *statements)
                await settles(partial(is_open, logs, "Duplicate entry 'row'"), True)
    if mode == "pessimistic":
        merging.do("SET sql_mode = ''", *statements)
        found = await merging.fault()
        assert found.event == "ddl.refused"
        assert "1062" in found.message
    assert merging.on(merging.target, "SELECT * FROM x") == (("row 1", 1), ("row 2", 2))


@pytest.mark.parametrize("mode", ["optimistic", "pessimistic"])
async def test_the_values_of_strict_shards_are_no_obstacle(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    """The last shard is strict: its values fit."""
    merging = merging_from(mariadb_source)
    merging.mode, merging.more["shard-mode"] = "all", mode
    merging.create("x", "(id INT PRIMARY KEY, c VARCHAR(30))", shards=2)
    merging.do("INSERT INTO x_1 VALUES (1, '1xyz')", "INSERT INTO x_2 VALUES (2, '2')")
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("SET sql_mode = ''", "ALTER TABLE x_1 MODIFY c INT")
        merging.do("SET sql_mode = 'STRICT_ALL_TABLES'", "ALTER TABLE x_2 MODIFY c INT")
        await settles(merging.differences, {})
        await until_reconciled(merging, generation)


@pytest.mark.parametrize("mode", ["optimistic", "pessimistic"])
async def test_a_task_that_is_killed_after_the_values_are_cut(
    merging_from: MergingFrom,
    mariadb_source: DatabaseServer,
    mode: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    merging = merging_from(mariadb_source)
    shards_of(merging, 2)
    merging.more["shard-mode"] = mode
    async with merging.running() as generation:
        await merging.copied(generation)
    merging.on(merging.target, "UPDATE x SET s = 'another text'")
    merging.do(*(f"ALTER TABLE x_{n} MODIFY s INT" for n in (1, 2)))

    def die(here: Failpoint) -> None:
        column = merging.on(merging.target, "SHOW COLUMNS FROM x LIKE 's'")
        if here is Failpoint.DDL_EXECUTED and str(column[0][1]).startswith("int"):
            raise ZeroDivisionError(here)

    with monkeypatch.context() as patched:
        patched.setattr(ddl_execution, "reach", die)
        with anyio.fail_after(PATIENCE), pytest.raises((ExceptionGroup, ZeroDivisionError)):
            await merging.generation().run(anyio.Event(), anyio.Event())
    merging.on(merging.target, "UPDATE x SET s = 7")
    async with merging.running() as generation:
        await settles(merging.differences, {})
        await until_reconciled(merging, generation)


async def test_values_of_dropped_shards_are_not_cut(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    """No shard could give them back."""
    merging = merging_from(mariadb_source)
    shards_of(merging, 3)
    async with merging.running() as generation:
        await merging.copied(generation)
    merging.do("DROP TABLE x_3", "UPDATE x_1 SET s = 'short'", "UPDATE x_2 SET s = 'short'")
    merging.do(*(f"ALTER TABLE x_{n} MODIFY s VARCHAR(6)" for n in (1, 2)))
    found = await merging.fault()
    assert found.event == "ddl.refused"
    assert merging.on(merging.target, "SELECT s FROM x WHERE id = 3") == (("a text of 3",),)
