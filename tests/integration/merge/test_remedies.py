"""What the remedies of faults say, done as it is said: the task continues and no row is lost."""

from __future__ import annotations

import re
from collections.abc import Callable

import anyio
import pytest
from structlog.testing import capture_logs

from actors.errors.faults import FatalError, of_target
from actors.task.resources.leftovers import forget_saved
from replicator.downstream.meta.moved_shards import JOINS
from replicator.events.fault_catalogue import shared_text
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from replicator.schema.effects.overridden_effects import OverrideAction
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import copy_all_anew, override
from tests.support.tasks.running import (
    LOOK_SECONDS,
    NOTHING,
    PATIENCE,
    caught_up,
    fault_of,
    settles,
)
from tests.support.tasks.task_files import endpoint, start_of

MakeMerging = Callable[..., Merging]
X = "(id INT PRIMARY KEY, v VARCHAR(9))"


async def equal(merging: Merging) -> None:
    """Wait until the targets have the rows of the shards."""
    await settles(merging.differences, {})


def way(found: FatalError, words: str) -> str:
    """The one remedy that has these words."""
    [told] = [told for told in found.remedies if words in told]
    return told


def not_empty(merging: Merging) -> None:
    """Shards with rows, and a target that has one of somebody's that is in the way of the last."""
    merging.create("x", X, shards=2)
    merging.create("z", X)
    for number, server in enumerate(merging.sources.values()):
        first = 1000 * number
        merging.on(
            server,
            f"INSERT INTO x_1 SELECT {first} + seq, 'a' FROM seq_1_to_20",
            f"INSERT INTO x_2 SELECT {first} + 100 + seq, 'b' FROM seq_1_to_20",
            f"INSERT INTO z_1 VALUES ({number}, 'z')",
        )
    merging.on(merging.target, f"INSERT INTO x VALUES ({1000 * number + 105}, 'old')")


async def empty_as_told(merging: Merging) -> None:
    found = await merging.fault()
    assert found.event == "copy.duplicate"
    told = way(found, "TRUNCATE TABLE")
    [statement] = [part for part in told.split(": ") if part.startswith("TRUNCATE")]
    merging.target.execute(statement.split(";")[0])


@pytest.mark.remedy("copy.duplicate", "resume")
async def test_a_target_with_rows_is_emptied_during_its_copy(
    merging_from: MakeMerging, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode = "all"
    not_empty(merging)
    await empty_as_told(merging)
    with capture_logs() as logs:
        async with merging.running() as generation:
            await merging.copied(generation)
            merging.do("INSERT INTO x_1 VALUES (50, 'later')", "DELETE FROM x_2 WHERE id = 101")
            await merging.check(generation)
    assert [e["target"] for e in logs if e["event"] == "copy.target-emptied"] == [
        f"{merging.database}.x"
    ]


async def test_rows_of_the_copy_replace_those_in_their_way(
    merging_from: MakeMerging, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode = "all"
    not_empty(merging)
    found = await merging.fault()
    assert found.event == "copy.duplicate"
    assert not any("on-duplicate-logical" in told for told in found.remedies)
    merging.more["loaders"] = {"mine": {"on-duplicate-logical": "replace"}}
    merging.instance["loader-config-name"] = "mine"
    merging.changed(mode="all")
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("DELETE FROM x_2 WHERE id = 101")
        await merging.check(generation)


async def test_a_blocked_target_is_emptied_while_others_are_followed(
    merging_from: MakeMerging, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode = "all"
    not_empty(merging)
    await empty_as_told(merging)
    merging.on(merging.target, "INSERT INTO x VALUES (105, 'old')")
    merging.blocked = of_target(TableName(merging.database, "x"))
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("INSERT INTO x_1 VALUES (50, 'held')", "INSERT INTO z_1 VALUES (7, 'flows')")
        merging.do("DELETE FROM x_1 WHERE id = 3")
        await merging.caught_up(generation)
    assert merging.differences(but=["x"]) == {}
    merging.on(merging.target, "TRUNCATE TABLE x")
    merging.blocked = NOTHING
    async with merging.running() as generation:
        await merging.copied(generation)
        await equal(merging)
        merging.do("INSERT INTO x_1 VALUES (51, 'later')", "DELETE FROM x_2 WHERE id = 101")
        await equal(merging)


async def test_a_target_is_emptied_when_one_of_two_sources_is_copied(
    merging_from: MakeMerging,
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
) -> None:
    merging = merging_from(mariadb_source, mariadb_source_full)
    merging.mode = "full"
    not_empty(merging)
    await empty_as_told(merging)
    await merging.copy()
    assert merging.differences() == {}


async def test_a_target_that_keeps_rows_of_its_copy_is_not_copied_anew(
    merging_from: MakeMerging, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode = "all"
    not_empty(merging)
    found = await merging.fault()
    assert found.event == "copy.duplicate"
    merging.on(merging.target, "DELETE FROM x WHERE v = 'old'")
    with capture_logs() as logs:
        async with merging.running() as generation:
            await merging.copied(generation)
            await merging.check(generation)
    assert not [e for e in logs if e["event"] == "copy.target-emptied"]


async def two_sources(merging: Merging) -> DatabaseServer:
    """Shards of two sources that are followed; returns the second source."""
    merging.create("x", X, shards=2)
    merging.create("y", "(n INT)")
    async with merging.running() as generation:
        await merging.caught_up(generation)
    return list(merging.sources.values())[1]


@pytest.fixture
def merging(
    merging_from: MakeMerging,
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
) -> Merging:
    return merging_from(mariadb_source, mariadb_source_full)


@pytest.mark.remedy("rows.undecodable", "copy anew")
async def test_rows_around_one_that_cannot_be_read_are_copied_anew(merging: Merging) -> None:
    second = await two_sources(merging)
    merging.do(*(f"INSERT INTO x_{n % 2 + 1} VALUES ({n}, 'before')" for n in range(1, 31)))
    merging.on(second, "INSERT INTO x_1 VALUES (1000, 'second')", "INSERT INTO y_1 VALUES (1)")
    merging.do("SET binlog_row_image=MINIMAL", "UPDATE x_1 SET v = 'part' WHERE id = 2")
    merging.do("INSERT INTO x_1 VALUES (500, 'after')", "INSERT INTO y_1 VALUES (1)")
    found = await merging.fault()
    assert found.event == "rows.undecodable"
    assert not [told for told in found.remedies if "--remove-meta" in told]
    assert shared_text("copy_again") in way(found, "copy everything again")
    await copy_all_anew(merging, "x", "y")


@pytest.mark.remedy("source.unreadable", "start behind")
async def test_a_task_starts_behind_an_event_that_cannot_be_read(merging: Merging) -> None:
    merging.mode = "all"
    merging.create("x", X, shards=2)
    merging.create("bag", "(n INT)")
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.caught_up(generation)
    second = list(merging.sources.values())[1]
    merging.do(*(f"INSERT INTO x_{n % 2 + 1} VALUES ({n}, 'before')" for n in range(1, 31)))
    merging.do(*(f"INSERT INTO bag_1 VALUES ({n % 3})" for n in range(1, 31)))
    merging.on(second, *(f"INSERT INTO bag_1 VALUES ({n % 3})" for n in range(1, 31)))
    merging.on(second, "INSERT INTO x_1 VALUES (1000, 'second')")
    merging.do(
        f"SELECT 98, 'file' INTO OUTFILE '{merging.database}.txt'",
        "SET binlog_format=STATEMENT",
        f"LOAD DATA INFILE '{merging.database}.txt' INTO TABLE x_1",
    )
    behind = start_of(merging.source)
    merging.do("INSERT INTO x_2 VALUES (500, 'after')")
    merging.on(second, "INSERT INTO x_2 VALUES (1001, 'second')")
    found = await merging.fault()
    assert found.event == "source.unreadable"
    told = way(found, "start after the event")
    # The task goes on with the other source, until it is stopped in order.
    assert found.scope is not None
    merging.blocked = found.scope
    async with merging.running() as generation:
        await merging.copied(generation)
        await caught_up(generation, {"b": second})
    merging.blocked = NOTHING
    merging.on(merging.target, "INSERT INTO x VALUES (98, 'file')")
    saved = merging.target.execute(
        f"SELECT source, binlog_file, binlog_offset"
        f" FROM {merging.database}_meta.{merging.database}_checkpoint"
    )
    for word in ("`task-mode: incremental`", "`meta:` of source a"):
        assert word in told
    assert "safe-mode" not in told
    starts = {source: {"binlog-name": file, "binlog-pos": at} for source, file, at in saved}
    merging.instances = {"a": {"meta": behind}, "b": {"meta": starts["b"]}}
    merging.changed(mode="incremental")
    await forget_saved(merging.task)
    async with merging.running() as generation:
        await merging.caught_up(generation)
        assert merging.differences() == {}


@pytest.mark.remedy("source.unreadable", "copy anew")
async def test_a_transaction_that_is_applied_in_part_is_not_made_by_hand(
    merging_from: MakeMerging, mysql_source: DatabaseServer
) -> None:
    """Its rows would be there twice."""
    merging = merging_from(mysql_source)
    merging.create("bag", "(n INT, v MEDIUMTEXT)")
    merging.create("doc", "(id INT PRIMARY KEY, c JSON)")
    async with merging.running() as generation:
        merging.do("INSERT INTO doc_1 VALUES (1, JSON_OBJECT('a', REPEAT('x', 200), 'b', 1))")
        await merging.check(generation)
    merging.do(
        "SET binlog_row_value_options = PARTIAL_JSON",
        "BEGIN",
        "INSERT INTO bag_1 SELECT 1, REPEAT('x', 60000) FROM information_schema.collations"
        " LIMIT 150",
        "UPDATE doc_1 SET c = JSON_SET(c, '$.b', 2)",
        "COMMIT",
    )
    found = await merging.fault()
    assert found.event == "source.unreadable"
    assert merging.on(merging.target, "SELECT COUNT(*) > 0 FROM bag") == ((1,),)
    assert "are on the targets already" in found.message
    assert not [way for way in found.remedies if "--remove-meta" in way]
    await copy_all_anew(merging, "bag", "doc")


@pytest.mark.remedy("rows.no-plan", "resume")
async def test_a_set_is_given_the_labels_of_both(merging: Merging) -> None:
    merging.create("x", "(id INT PRIMARY KEY, s SET('a','b'))", shards=2)
    merging.on(merging.target, "ALTER TABLE x MODIFY s SET('b','it''s','a')")
    merging.on(merging.target, "INSERT INTO x VALUES (1, 'b,it''s')")
    async with merging.running():
        pass
    merging.do("INSERT INTO x_1 VALUES (2, 'a,b')")
    found = await merging.fault()
    assert found.event == "rows.no-plan"
    [statement] = re.findall(r"ALTER TABLE .*?(?=\. Or leave)", found.message)
    merging.on(merging.target, statement)
    async with merging.running() as generation:
        await merging.caught_up(generation)
    rows = merging.on(merging.target, "SELECT id, s FROM x ORDER BY id")
    assert rows == ((1, "b,it's"), (2, "a,b"))


@pytest.mark.remedy("source.unreadable", "resume", "reload", "run")
async def test_a_password_that_was_changed_is_put_right(merging: Merging) -> None:
    user = f"u{merging.database[-8:]}"
    merging.create("x", X, shards=2)
    merging.source.execute(
        f"CREATE USER {user}@'%' IDENTIFIED BY 'x'", f"GRANT ALL ON *.* TO {user}@'%'"
    )
    account = {**endpoint(merging.source), "user": user, "password": "x"}
    merging.source_of["a"] = {"from": account}
    async with merging.running() as generation:
        await merging.caught_up(generation)

    async def refused() -> FatalError:
        async def loses_its_connection() -> None:
            async with merging.running():
                merging.source.execute(f"ALTER USER {user}@'%' IDENTIFIED BY 'y'")
                merging.source.execute(f"KILL USER {user}")
                await anyio.sleep_forever()

        with anyio.fail_after(PATIENCE):
            return await fault_of(loses_its_connection())

    found = await refused()
    assert found.event == "source.unreadable"
    assert not [told for told in found.remedies if "--remove-meta" in told]
    merging.do("INSERT INTO x_1 VALUES (1, 'held')")
    assert "then `replicator resume`" in way(found, "that of the task file")
    merging.source.execute(f"ALTER USER {user}@'%' IDENTIFIED BY 'x'")
    async with merging.running() as generation:
        await merging.check(generation)
    found = await refused()
    merging.do("INSERT INTO x_1 VALUES (2, 'held')")
    assert "`replicator reload`" in way(found, "change the task file")
    merging.source_of["a"] = {"from": account | {"password": "y"}}
    merging.changed(mode="incremental")
    async with merging.running() as generation:
        await merging.check(generation)
    merging.source.execute(f"DROP USER {user}@'%'")


@pytest.mark.remedy("ddl.create-differs", "skip")
async def test_a_shard_of_another_structure_is_created_again_like_the_others(
    merging: Merging,
) -> None:
    merging.more["shard-mode"] = "pessimistic"
    merging.create("x", X, shards=2)
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.shards("x", 3)
    second = list(merging.sources.values())[1]
    merging.on(second, f"CREATE TABLE x_3 {X}")
    merging.do(
        "INSERT INTO x_1 VALUES (1, 'before')",
        "CREATE TABLE x_3 (id INT PRIMARY KEY, v VARCHAR(9), w INT)",
        "INSERT INTO x_3 VALUES (2, 'more', 7)",
        "INSERT INTO x_2 VALUES (3, 'after')",
    )
    found = await merging.fault()
    assert found.event == "ddl.create-differs"
    assert "DROP it and CREATE it like them" in way(found, "skip this statement")
    merging.do("DELETE FROM x_3", "DROP TABLE x_3", f"CREATE TABLE x_3 {X}")
    merging.do("INSERT INTO x_3 VALUES (4, 'like them')")
    await override(merging, found, OverrideAction.SKIP)
    merging.on(merging.target, "ALTER TABLE x ADD w INT")
    shards = f"{merging.task.meta_schema}.{merging.task.name}_moved_shard"
    joined = f"SELECT COUNT(*) FROM {shards} WHERE version = {JOINS} AND state = 'done'"
    async with merging.running():
        await settles(lambda: merging.target.execute(joined), ((1,),))
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.on(merging.target, "ALTER TABLE x DROP w")
    async with merging.running() as generation:
        merging.do("INSERT INTO x_3 VALUES (5, 'last')")
        await merging.check(generation)


@pytest.mark.remedy("rows.no-plan", "copy anew")
async def test_all_is_copied_anew_behind_a_change_that_no_binlog_has(merging: Merging) -> None:
    second = await two_sources(merging)
    merging.on(second, "INSERT INTO x_1 VALUES (1000, 'second')", "INSERT INTO y_1 VALUES (1)")
    merging.do("INSERT INTO x_1 VALUES (1, 'before')", "SET sql_log_bin=0")
    unseen = "SET sql_log_bin=0", "ALTER TABLE x_1 ADD w INT FIRST", "SET sql_log_bin=1"
    merging.do(*unseen, "INSERT INTO x_1 VALUES (7, 2, 'behind')")
    found = await merging.fault()
    assert found.event == "rows.no-plan"
    assert shared_text("copy_again") in found.remedies
    for server, shard in [(merging.source, "x_2"), (second, "x_1"), (second, "x_2")]:
        merging.on(server, f"ALTER TABLE {shard} ADD w INT FIRST")
    await copy_all_anew(merging, "x", "y", dropped=True)


@pytest.mark.remedy("rows.duplicate", "copy anew")
async def test_all_is_copied_anew_when_two_shards_had_a_row(merging: Merging) -> None:
    second = await two_sources(merging)
    merging.do("INSERT INTO x_1 VALUES (1, 'first')")
    async with merging.running() as generation:
        await merging.check(generation)
    merging.on(second, "INSERT INTO x_2 VALUES (1, 'second')", "INSERT INTO y_1 VALUES (1)")
    found = await merging.fault()
    assert found.event == "rows.duplicate"
    assert any(shared_text("copy_again") in told for told in found.remedies)
    merging.do("UPDATE x_1 SET id = 2")
    await copy_all_anew(merging, "x", "y")


@pytest.mark.remedy("source.missed-ddl", "reload", "copy anew")
async def test_all_is_copied_anew_for_a_source_that_missed_schema_changes(merging: Merging) -> None:
    merging.more["shard-mode"] = "pessimistic"
    second = await two_sources(merging)
    del merging.sources["b"]
    merging.changed(mode="incremental")
    async with merging.running():
        merging.do(*(f"ALTER TABLE x_{n} ADD w INT" for n in (1, 2)))
        merging.do("INSERT INTO x_1 VALUES (1, 'a', 1)")
        with anyio.fail_after(PATIENCE):
            # It stands behind the lock, which is resolved without the other source by then.
            while not merging.on(merging.target, "SELECT * FROM x"):
                await anyio.sleep(LOOK_SECONDS)
    merging.sources["b"] = second
    merging.changed(mode="incremental")
    merging.on(second, "INSERT INTO x_1 VALUES (1000, 'b')")
    merging.on(second, *(f"ALTER TABLE x_{n} ADD w INT" for n in (1, 2)))
    found = await merging.fault()
    assert found.event == "source.missed-ddl"
    assert shared_text("copy_again") in found.remedies
    del merging.sources["b"]
    merging.changed(mode="incremental")
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (2, 'a', 2)")
        await merging.caught_up(generation)
    assert merging.on(merging.target, "SELECT id FROM x") == ((1,), (2,))
    merging.sources["b"] = second
    await copy_all_anew(merging, "x", "y", dropped=True)


@pytest.mark.remedy("source.no-start", "run")
async def test_a_source_gets_its_start_in_the_task_file(merging: Merging) -> None:
    merging.create("x", X, shards=2)
    merging.instance["meta"] = None
    found = await merging.fault()
    assert found.event == "source.no-start"
    merging.instance.clear()
    merging.changed(mode="incremental")
    merging.generation()  # The task begins here.
    merging.do("INSERT INTO x_1 VALUES (1, 'a')")
    async with merging.running() as generation:
        await merging.check(generation)


@pytest.mark.parametrize("mode", ["all", pytest.param("incremental", marks=pytest.mark.slow)])
@pytest.mark.remedy("ddl.create-differs", "replace")
async def test_the_target_gets_the_structure_of_a_shard_that_was_created_otherwise(
    merging: Merging, mode: str
) -> None:
    merging.mode = mode
    merging.more["shard-mode"] = "pessimistic"
    merging.create("x", X, shards=2)
    async with merging.running() as generation:
        if mode == "all":
            await merging.copied(generation)
        await merging.caught_up(generation)
    merging.shards("x", 3)
    second = list(merging.sources.values())[1]
    merging.do(
        "INSERT INTO x_1 VALUES (1, 'before')",
        "CREATE TABLE x_3 (id INT PRIMARY KEY, v VARCHAR(9), w INT)",
        "INSERT INTO x_3 VALUES (2, 'more', 7)",
        "INSERT INTO x_2 VALUES (3, 'after')",
    )
    found = await merging.fault()
    assert found.event == "ddl.create-differs"
    merging.on(second, "CREATE TABLE x_3 (id INT PRIMARY KEY, v VARCHAR(9), w INT)")
    merging.on(second, "INSERT INTO x_3 VALUES (1002, 'more', 8)")
    await override(merging, found, OverrideAction.REPLACE, "ALTER TABLE x_3 ADD w INT")
    async with merging.running():
        for server in merging.sources.values():
            merging.on(server, "ALTER TABLE x_1 ADD w INT", "ALTER TABLE x_2 ADD w INT")
        await equal(merging)
    assert merging.on(merging.target, "SELECT w FROM x WHERE w IS NOT NULL ORDER BY w") == (
        (7,),
        (8,),
    )


async def test_a_shard_keeps_its_structure_whatever_the_operator_creates_on_the_target(
    merging: Merging,
) -> None:
    merging.more["shard-mode"] = "pessimistic"
    merging.create("x", "(id INT PRIMARY KEY, v BIGINT)")
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.shards("x", 2)
    second = list(merging.sources.values())[1]
    merging.do(
        "CREATE TABLE x_2 (id INT PRIMARY KEY, v INT UNSIGNED)",
        "INSERT INTO x_2 VALUES (2, 3000000000)",
    )
    found = await merging.fault()
    assert found.event == "ddl.create-differs"
    merging.on(second, "CREATE TABLE x_2 (id INT PRIMARY KEY, v BIGINT)")
    await override(
        merging, found, OverrideAction.REPLACE, "CREATE TABLE x_2 (id INT PRIMARY KEY, v BIGINT)"
    )
    async with merging.running():
        await equal(merging)
