"""Shard DDL, case by case: one change after the other. Numbers are those of the cases to pass."""

from __future__ import annotations

from tests.support.servers.tidb import TiDBServer
from tests.support.tasks.running import settles
from tests.support.tasks.shard_ddl import ShardedEstate


async def test_case_002_both_shards_of_a_source_add_a_column(estate: ShardedEstate) -> None:
    estate.create("A1", "A2")
    async with estate.merging():
        estate.insert("A1", "1")
        estate.insert("A2", "2")
        estate.ddl("A1", "ADD new_col1 INT")
        estate.ddl("A2", "ADD new_col1 INT")
        estate.insert("A1", "3, 3")
        estate.insert("A2", "4, 4")
        await estate.settled()


async def test_case_003_rows_behind_a_ddl_are_held(estate: ShardedEstate) -> None:
    estate.create("A1", "A2")
    async with estate.merging():
        estate.ddl("A1", "ADD new_col1 INT")
        estate.insert("A1", "1, 1")
        estate.insert("A2", "2")
        await estate.caught_up()
        assert sorted(estate.rows()) == [(b"2",)]
        assert [view.rows_held for view in estate.views()] == [1]
        estate.ddl("A2", "ADD new_col1 INT")
        await estate.settled()


async def test_cases_006_to_009_shards_of_two_sources_and_two_schemas(
    mixed_estate: ShardedEstate,
) -> None:
    estate = mixed_estate
    estate.create("A1", "B1", "B2", "B'1", "B'2")
    async with estate.merging():
        for number, shard in enumerate(estate.shards):
            estate.insert(shard, str(number))
            estate.ddl(shard, "ADD new_col1 INT")
            estate.insert(shard, f"{number + 10}, 7")
        await estate.settled()
        for shard in reversed(estate.shards):
            estate.run(shard, "UPDATE {t} SET new_col1 = id")
            estate.ddl(shard, "ADD new_col2 INT")
            estate.run(shard, "UPDATE {t} SET new_col2 = id WHERE id > 9")
        await estate.settled()


async def test_case_010_two_changes_of_a_shard_before_the_other_begins(
    estate: ShardedEstate,
) -> None:
    estate.create("A1", "A2")
    async with estate.merging():
        for shard in estate.shards:
            estate.put(shard, "{}")
            estate.ddl(shard, "ADD c1 INT")
            estate.put(shard, "{}, 1")
            estate.ddl(shard, "ADD c2 INT")
            estate.put(shard, "{}, 1, 2")
            if shard == "A1":
                await estate.caught_up()
                assert len(estate.rows()) == 1
                assert [view.rows_held for view in estate.views()] == [2]
        await estate.settled()


async def test_case_030_one_shard_in_each_source(estate: ShardedEstate) -> None:
    estate.create("A1", "B1")
    async with estate.merging():
        estate.ddl("A1", "ADD c1 INT")
        estate.insert("A1", "1, 1")
        estate.insert("B1", "2")
        await estate.caught_up()
        assert sorted(estate.rows()) == [(b"2",)]
        estate.ddl("B1", "ADD c1 INT")
        estate.insert("B1", "3, 3")
        estate.run("A1", "UPDATE {t} SET c1 = 5 WHERE id = 1")
        estate.run("B1", "DELETE FROM {t} WHERE id = 2")
        await estate.settled()


async def test_the_same_change_several_times_is_several_items(estate: ShardedEstate) -> None:
    """The same text several times is several items: they are compared by their number."""
    estate.create("A1", "B1", "B2")
    shapes = dict.fromkeys(estate.shards, "{}")

    def change(shard: str, action: str) -> None:
        estate.ddl(shard, action)
        shapes[shard] = "{}, 7" if action.startswith("ADD") else "{}"
        for other in estate.shards:
            estate.put(other, shapes[other])

    add, drop = "ADD c INT", "DROP COLUMN c"
    async with estate.merging():
        change("A1", add)
        for shard in ("B1", "B2"):
            for action in (add, drop, add, drop, add):
                change(shard, action)
        for action in (drop, add, drop, add):
            change("A1", action)
        await estate.settled()
        assert sum(estate.rows().values()) == 45


async def test_a_long_sequence_of_changes_one_shard_after_the_other(
    mixed_estate: ShardedEstate,
) -> None:
    """Each shard goes through the whole sequence before the next one begins."""
    estate = mixed_estate
    last = ["ADD COLUMN e INT", "ADD INDEX e (e)"]
    if not isinstance(estate.target, TiDBServer):
        # TiDB refuses to add a column and an index of it in one statement.
        last = [", ".join(last)]
    estate.create("A1", "A2", "B2", "B3", "B4", table="(uid INT PRIMARY KEY, name VARCHAR(20))")
    async with estate.merging():
        for number, shard in enumerate(estate.shards):
            first = number * 100
            estate.insert(shard, *(f"{first + row}, 'n{row}'" for row in range(5)))
            estate.ddl(shard, "ADD COLUMN c INT")
            estate.run(shard, "CREATE INDEX c ON {t} (c)")
            estate.run(shard, f"UPDATE {{t}} SET c = {number} WHERE uid % 2 = 0")
            estate.ddl(shard, "ADD COLUMN d INT", "ADD INDEX d (d)")
            estate.ddl(shard, *last)
            estate.run(shard, "UPDATE {t} SET d = uid, e = -uid WHERE uid % 3 = 0")
        for shard in estate.shards:
            estate.run(shard, "UPDATE {t} SET uid = uid + 100000")
        await estate.settled()
        indexes = estate.target.execute(f"SHOW INDEX FROM {estate.db}.t")
        assert {row[2] for row in indexes} == {"PRIMARY", "c", "d", "e"}


async def test_case_038_defaults_of_different_seconds(mixed_estate: ShardedEstate) -> None:
    """The statements are the same, so the lock resolves; old rows get their shards' times."""
    estate = mixed_estate
    estate.create("A1", "B1")
    action = "ADD d DATETIME DEFAULT CURRENT_TIMESTAMP"
    for shard in estate.shards:
        estate.put(shard, "{}")
    async with estate.merging():
        await estate.caught_up()
        for shard, moment in zip(estate.shards, (1_700_000_000, 1_700_000_005), strict=True):
            estate.server(shard).execute(
                "SET time_zone = '+00:00'",
                f"SET timestamp = {moment}",
                f"ALTER TABLE {estate.name(shard)} {action}",
            )
            estate.put(shard, "{}, '2001-02-03 04:05:06'")
        await estate.has_rows(4)
        first, second = (b"2023-11-14 22:13:20",), (b"2023-11-14 22:13:25",)
        wanted = {(b"2001-02-03 04:05:06",): 2, first: 1, second: 1}
        await settles(lambda: dict(estate.rows("d")), wanted)
