"""The remedies of faults of schema changes, done as they say: no row is lost or there twice."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from actors.errors.faults import FatalError
from replicator.sandbox.server import DatabaseServer
from replicator.schema.effects.overridden_effects import OverrideAction
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import override, until_shard_waits
from tests.support.tasks.running import PATIENCE, settles

X = "(id INT PRIMARY KEY, a INT)"

MODES = pytest.mark.parametrize("mode", ["", "pessimistic"])


@pytest.fixture
def merging(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
) -> Merging:
    """Two sources, ``a`` and ``b``, with shards ``x_1`` and ``x_2`` of keys that are their own."""
    return merging_from(mariadb_source, mariadb_source_full)


async def begin(
    merging: Merging, columns: str = X, *, mode: str = "", others: bool = False
) -> DatabaseServer:
    """Rows in all shards, and a run that has them; returns the second source.

    ``others``: the target had a row of somebody else when the run began.
    """
    merging.more["shard-mode"] = mode
    merging.create("x", columns, shards=2)
    if others:
        merging.on(merging.target, "INSERT INTO x VALUES (900, 9)")
    async with merging.running() as generation:
        for number, server in enumerate(merging.sources.values()):
            for shard in (1, 2):
                key = 1000 * number + 100 * shard
                merging.on(server, f"INSERT INTO x_{shard} VALUES ({key}, 1), ({key + 1}, 2)")
        await merging.caught_up(generation)
        merging.on(merging.target, "DELETE FROM x WHERE id = 900")
        await merging.check(generation)
    return list(merging.sources.values())[1]


async def fault(merging: Merging, event: str) -> FatalError:
    """The fault that ends the next run."""
    with anyio.fail_after(PATIENCE), pytest.raises((FatalError, ExceptionGroup)) as caught:
        await merging.generation().run(anyio.Event(), anyio.Event())
    # Both targets of a shard that moves have the same one.
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, FatalError), repr(error)
    assert error.event == event, error
    return error


async def goes_on(merging: Merging, columns: str = "*") -> None:
    """The task runs, and applies what came meanwhile and what comes now."""
    async with merging.running() as generation:
        await equal(merging, columns)
        merging.do("UPDATE x_1 SET a = a + 10", "DELETE FROM x_1 WHERE id = 101")
        merging.do("INSERT INTO x_2 (id, a) VALUES (299, 9)")
        await merging.caught_up(generation)
        await equal(merging, columns)


async def equal(merging: Merging, columns: str) -> None:
    """Wait until the target has the rows of the shards."""
    await settles(lambda: merging.differences({"x": columns}), {})


def shards(merging: Merging) -> list[tuple[DatabaseServer, str]]:
    return [(server, shard) for server in merging.sources.values() for shard in ("x_1", "x_2")]


def give_values(merging: Merging, column: str) -> None:
    """Older rows get the values that they have in their shards."""
    for server, shard in shards(merging):
        for key, value in merging.on(server, f"SELECT id, {column} FROM {shard}"):
            given = f"UPDATE x SET {column} = '{value}' WHERE id = {key} AND {column} IS NULL"
            merging.on(merging.target, given)


async def test_a_refused_statement_is_given_without_the_key_that_no_shard_breaks(
    merging: Merging,
) -> None:
    """A skip would leave the former values on the target, too."""
    await begin(merging, mode="pessimistic")
    for server, shard in shards(merging):
        merging.on(server, f"ALTER TABLE {shard} MODIFY a DECIMAL(9, 1), ADD UNIQUE (a)")
    found = await fault(merging, "ddl.refused")
    [told] = [way for way in found.remedies if "binlog skip" in way]
    assert "binlog replace" in told
    assert "--repair-now" in told
    shard = found.where.split(",")[0].rpartition(".")[2]
    statement = f"ALTER TABLE {shard} MODIFY a DECIMAL(9, 1)"
    await override(merging, found, OverrideAction.REPLACE, statement)
    await goes_on(merging)


@pytest.mark.remedy("ddl.history", "skip")
async def test_an_executed_statement_that_is_replaced_again_counts_as_the_executed_one(
    merging: Merging,
) -> None:
    """An open lock of another target holds the saved position back: the source is read again."""
    merging.create("y", X)
    await begin(merging, mode="pessimistic")
    merging.shards("y", 2)
    other = list(merging.sources.values())[1]
    merging.do("ALTER TABLE x_1 ADD d INT", "CREATE TABLE y_2 (id INT PRIMARY KEY, a INT, e INT)")
    merging.on(other, f"CREATE TABLE y_2 {X}")
    created = await fault(merging, "ddl.create-differs")
    await override(merging, created, OverrideAction.REPLACE, "ALTER TABLE y_2 ADD e INT")
    merging.do("ALTER TABLE y_1 ADD e INT", "INSERT INTO y_2 VALUES (1, 1, 1)")
    for shard in ("y_1", "y_2"):
        merging.on(other, f"ALTER TABLE {shard} ADD e INT")
    async with merging.running() as generation:
        await merging.caught_up(generation)
        await settles(lambda: merging.differences({"x": "id, a"}), {})
    late = "ALTER TABLE y_2 ADD e INT, ADD f INT"
    await override(merging, created, OverrideAction.REPLACE, late)
    found = await fault(merging, "ddl.history")
    await override(merging, found, OverrideAction.SKIP)
    for server, shard in shards(merging):
        if (server, shard) != (merging.source, "x_1"):
            merging.on(server, f"ALTER TABLE {shard} ADD d INT")
    merging.do("INSERT INTO y_2 VALUES (2, 2, 2)")
    await goes_on(merging)
    assert not merging.differences()


@pytest.mark.remedy("ddl.other-values", "skip")
async def test_older_rows_are_given_the_numbers_of_their_shards(merging: Merging) -> None:
    """Rows without a key are found by all of their values."""
    await begin(merging, "(id INT, a INT)", mode="pessimistic", others=True)
    for server, shard in shards(merging):
        merging.on(
            server,
            f"ALTER TABLE {shard} ADD b INT NOT NULL AUTO_INCREMENT, ADD KEY (b)",
            f"INSERT INTO {shard} (id, a) SELECT id + 50, 3 FROM {shard} WHERE a = 1",
        )
    values = {
        (server, shard): merging.on(server, f"SELECT id, b FROM {shard}")
        for server, shard in shards(merging)
    }
    for server, shard in shards(merging):
        merging.on(server, f"UPDATE {shard} SET a = 50 WHERE a = 2")
    found = await fault(merging, "ddl.other-values")
    assert any("by hand" in way for way in found.remedies)
    merging.on(merging.target, "ALTER TABLE x ADD b INT NULL, ADD KEY (b)")
    for rows in values.values():
        for key, value in rows:
            merging.on(merging.target, f"UPDATE x SET b = {value} WHERE id = {key}")
    await override(merging, found, OverrideAction.SKIP)
    await goes_on(merging)


@pytest.mark.remedy("ddl.several-tables", "replace")
async def test_shards_exchange_their_names(merging: Merging) -> None:
    second = await begin(merging, mode="pessimistic")
    merging.do(
        "ALTER TABLE x_1 ADD c INT",
        "INSERT INTO x_1 VALUES (110, 1, 1)",
        "RENAME TABLE x_1 TO x_9, x_2 TO x_1, x_9 TO x_2",
        "INSERT INTO x_1 VALUES (220, 1)",
        "INSERT INTO x_2 VALUES (120, 1, 1)",
    )
    found = await fault(merging, "ddl.several-tables")
    await override(
        merging,
        found,
        OverrideAction.REPLACE,
        "RENAME TABLE x_1 TO x_9",
        "RENAME TABLE x_2 TO x_1",
        "RENAME TABLE x_9 TO x_2",
    )
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.do("ALTER TABLE x_1 ADD c INT")
    merging.on(second, "ALTER TABLE x_1 ADD c INT", "ALTER TABLE x_2 ADD c INT")
    async with merging.running() as generation:
        await equal(merging, "*")


@MODES
async def test_a_shard_moves_to_another_target(merging: Merging, mode: str) -> None:
    merging.create("y", X, shards=1)
    second = await begin(merging, mode=mode)
    merging.do(
        "UPDATE x_2 SET a = 7 WHERE id = 200",
        "RENAME TABLE x_2 TO y_2",
        "UPDATE y_2 SET a = 8 WHERE id = 200",
        "DELETE FROM y_2 WHERE id = 201",
        "INSERT INTO y_2 VALUES (202, 3)",
    )
    found = await until_shard_waits(merging)
    of_the_shard = "id BETWEEN 200 AND 299"
    merging.on(
        merging.target,
        f"INSERT INTO y SELECT * FROM x WHERE {of_the_shard}",
        f"DELETE FROM x WHERE {of_the_shard}",
    )
    await override(merging, found, OverrideAction.SKIP)
    merging.do(f"CREATE TABLE x_2 {X}")
    merging.on(second, f"CREATE TABLE y_2 {X}")
    merging.shards("y", 2)
    async with merging.running() as generation:
        # The shard joins at the next start of the actors.
        await settles(merging.differences, {})
        merging.do("UPDATE y_2 SET a = 9 WHERE id = 202")
        await merging.check(generation)
