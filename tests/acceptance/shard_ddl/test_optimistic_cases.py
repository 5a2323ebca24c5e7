"""The optimistic mode on the cases of shard DDL, by their numbers: several tables of each case."""

from __future__ import annotations

import anyio
import pytest

from actors.task.operator.lock_report import differing_targets, lock_statuses
from replicator.sharding.open_locks import UnlockError
from tests.support.tasks.open_statements import flows, opened, unlock
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, fault_of
from tests.support.tasks.shard_ddl import SHARD, ShardedEstate

TWO = "(id INT PRIMARY KEY, b INT)"


@pytest.fixture
def estate(optimistic_estate: ShardedEstate) -> ShardedEstate:
    return optimistic_estate


async def test_cases_014_035_065_the_place_of_a_column_is_neutral(estate: ShardedEstate) -> None:
    estate.create("A1", "B1", "B2", table=TWO)
    async with estate.merging():
        estate.ddl("A1", "ADD c INT FIRST", "ADD d INT AFTER id")
        await flows(estate, "A1", "1, {}, 2, 3")
        estate.ddl("B1", "ADD d INT", "ADD c INT AFTER b", "MODIFY b INT FIRST")
        await flows(estate, "B1", "3, {}, 1, 2")
        estate.ddl("B2", "ADD d INT FIRST", "ADD c INT", "MODIFY d INT AFTER c")
        await flows(estate, "B2", "{}, 3, 1, 2")
        await flows(estate, "A1", "1, {}, 2, 3")
        await estate.settled()


@pytest.mark.parametrize(
    ("theirs", "own", "flowing", "refused"),
    [("VARCHAR(4)", "INT", "17", "12345"), ("INT", "VARCHAR(9)", "", "")],
)
async def test_case_031_skip_a_value_that_does_not_fit_blocks(
    estate: ShardedEstate, theirs: str, own: str, flowing: str, refused: str
) -> None:
    """Where any text might be another number on the target, `skip` is refused at once."""
    estate.create("A1", "B1", "B2")

    async def skipped() -> None:
        async with estate.merging():
            estate.ddl("A1", f"ADD c1 {theirs}")
            await flows(estate, "A1", "{}, 5")
            estate.ddl("B1", f"ADD c1 {own}")
            [lock] = await opened(estate, "B1")
            answers = {way.action for way in lock.remedies} - {""}
            if not flowing:
                assert answers == {"exec"}
                with pytest.raises(UnlockError, match="another type"):
                    await unlock(estate, "B1", skip=True)
                return
            assert answers == {"skip"}
            with pytest.raises(UnlockError, match="another type"):
                await unlock(estate, "B1", skip=False)
            estate.put("B1", f"{{}}, {flowing}")
            await unlock(estate, "B1", skip=True)
            await flows(estate, "B1", "{}, 18")
            assert estate.rows("c1")[(flowing.encode(),)] == 1
            estate.put("B1", f"{{}}, {refused}")
            await anyio.sleep_forever()

    if flowing:
        assert "Data too long for column 'c1'" in str(await fault_of(skipped()))
    else:
        await skipped()


async def test_case_032_a_column_that_comes_and_goes(estate: ShardedEstate) -> None:
    estate.create("A1", "B1", "B2")
    async with estate.merging():
        estate.ddl("A1", "ADD x INT")
        await flows(estate, "A1", "{}, 1")
        estate.ddl("A1", "DROP x", "ADD y INT", "DROP y", "ADD x INT DEFAULT 4")
        await flows(estate, "A1", "{}, 2")
        for shard in ("B1", "B2"):
            await flows(estate, shard, "{}")
            estate.ddl(shard, "ADD x INT DEFAULT 4")
            await flows(estate, shard, "{}, 3")
        assert not estate.views()
        await estate.settled()


@pytest.mark.not_on_tidb("it adds no AUTO_INCREMENT column to a table")
async def test_case_034_a_column_that_counts_waits_for_all(estate: ShardedEstate) -> None:
    """Then the target's rows get the numbers of the shards, and two shards have the same ones."""
    estate.create("A1", "B1", table="(b INT NOT NULL)")

    async def follow() -> None:
        async with estate.merging():
            await flows_b(estate, "A1")
            estate.ddl("A1", "ADD id INT AUTO_INCREMENT UNIQUE")
            [lock] = await opened(estate, "A1")
            assert "numbers its rows" in lock.reason
            await flows_b(estate, "B1")
            estate.ddl("B1", "ADD id INT AUTO_INCREMENT UNIQUE")
            await anyio.sleep_forever()

    fault = await fault_of(follow())
    assert fault.event == "rows.duplicate"


async def test_case_067_two_defaults_are_told(estate: ShardedEstate) -> None:
    """Nothing waits, and there is nothing to unlock; it ends when the shards agree."""
    estate.create("A1", "B1", "B2", table=TWO)
    async with estate.merging():
        for number, shard in enumerate(estate.shards):
            estate.ddl(shard, f"MODIFY b INT DEFAULT {min(number, 1) + 1}")
            for other in estate.shards:
                await flows(estate, other, "{}, 5")
        [told] = differing_targets(estate.running)
        assert "the default of column b is " in told.notices[0]
        assert not estate.views()
        with pytest.raises(UnlockError, match="there is no lock"):
            await unlock(estate, "A1", skip=True)
        estate.ddl("A1", "MODIFY b INT DEFAULT 2")
        await estate.settled()
        assert not differing_targets(estate.running)


async def flows_b(estate: ShardedEstate, shard: str) -> None:
    before = sum(estate.rows().values())
    estate.put(shard, "{}")
    await estate.has_rows(before + 1)


async def test_case_038_a_default_of_the_moment(estate: ShardedEstate) -> None:
    estate.create("A1", "B1", "B2")
    async with estate.merging():
        for shard in estate.shards:
            await flows(estate, shard, "{}")
        for shard in estate.shards:
            estate.ddl(shard, "ADD c DATETIME NOT NULL DEFAULT NOW()")
            await flows(estate, shard, "{}, '2020-01-02 03:04:05'")
        assert not estate.views()
        await estate.caught_up()
        assert estate.rows("c")[(b"2020-01-02 03:04:05",)] == 3


CHARSETS = "(id INT PRIMARY KEY, b VARCHAR(9) CHARACTER SET utf8 COLLATE utf8_bin)"
WALKS = {
    "039 a charset": (SHARD, "ADD c VARCHAR(9) CHARACTER SET latin1", "{}", "{}, 'ä'"),
    "040 utf8 to utf8mb4": (
        CHARSETS,
        "MODIFY b VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "{}, 'ä'",
        "{}, '𝄞'",
    ),
    "068 a default and a type": (TWO, "MODIFY b BIGINT DEFAULT 8", "{}, 1", "{}, DEFAULT"),
    "COLUMN_INDEX": (TWO, "ADD c INT, ADD INDEX i (c)", "{}, 1", "{}, 1, 2"),
    "no key": ("(id INT, b INT)", "ADD c INT DEFAULT 3", "{}, 1", "{}, 1, 2"),
}
"""Table, change, a row before and behind it."""


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.not_on_tidb("it stores latin1 as UTF-8"))
        if "039" in case
        else case
        for case in WALKS
    ],
)
async def test_walks(estate: ShardedEstate, case: str) -> None:
    table, action, old, new = WALKS[case]
    estate.create("A1", "B1", "B2", table=table)
    async with estate.merging():
        for shard in estate.shards:
            await flows(estate, shard, old)
        for done, shard in enumerate(estate.shards):
            estate.ddl(shard, action)
            for number, other in enumerate(estate.shards):
                await flows(estate, other, new if number <= done else old)
                if "no key" in case:
                    estate.run(other, "UPDATE {t} SET b = b + 1")
            assert not estate.views()
        await estate.settled()


GENERATED = "(id INT PRIMARY KEY, g INT GENERATED ALWAYS AS (id + 1) STORED)"


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            "STORED", marks=pytest.mark.not_on_tidb("it adds no stored column to a table")
        ),
        "VIRTUAL",
    ],
)
async def test_cases_041_043_047_generated_columns(
    mariadb_estate: ShardedEstate, kind: str
) -> None:
    estate = mariadb_estate
    estate.mode = "optimistic"
    estate.create("A1", "B1", "B2")
    formula = "ADD g INT GENERATED ALWAYS AS (id + 1) " + kind
    async with estate.merging():
        for shard in ("A1", "B1", "B2"):
            await flows(estate, shard, "{}")
            estate.ddl(shard, formula)
            await flows(estate, shard, "{}, DEFAULT")
        await estate.settled()
        for shard in ("A1", "B1", "B2"):
            estate.ddl(shard, "DROP COLUMN g")
            await flows(estate, shard, "{}")
        await estate.settled()
        estate.ddl("A1", formula)
        await flows(estate, "A1", "{}, DEFAULT")
        estate.ddl("B1", formula.replace("id + 1", "id + 2"))
        estate.put("B1", "{}, DEFAULT")
        [lock] = await opened(estate, "B1")
        assert "computed otherwise" in lock.reason
        await flows(estate, "B2", "{}")
        await unlock(estate, "B1", skip=True)
        await flows(estate, "B1", "{}, DEFAULT")
    async with estate.merging():
        await flows(estate, "B1", "{}, DEFAULT")
        estate.ddl("B1", "DROP COLUMN g", formula)
        await flows(estate, "B1", "{}, DEFAULT")
        estate.ddl("B2", formula)
        await flows(estate, "B2", "{}, DEFAULT")
        await estate.settled()


async def test_cases_050_057_059_new_names(estate: ShardedEstate) -> None:
    estate.create("A1", "B1", "B2", table=TWO)
    async with estate.merging():
        for shard in estate.shards:
            await flows(estate, shard, "{}, 1")
        estate.ddl("A1", "CHANGE b c BIGINT AFTER id", "ADD d INT")
        estate.put("A1", "{}, 2, 3")
        estate.ddl("B1", "CHANGE b e BIGINT")
        estate.put("B1", "{}, 2")
        await opened(estate, "A1", "B1")
        await flows(estate, "B2", "{}, 4")
        estate.ddl("B1", "CHANGE e c BIGINT")
        estate.put("B1", "{}, 5")
    async with estate.merging():
        await opened(estate, "A1", "B1")
        await unlock(estate, "B1", skip=False)
        # The column has another name at once, since only B1 has it by now.
        await flows(estate, "B1", "{}, 6")
        await opened(estate, "A1")
        await unlock(estate, "A1", skip=False)
        await flows(estate, "A1", "{}, 8, 9")
        estate.ddl("B2", "CHANGE b c BIGINT")
        estate.put("B2", "{}, 10")
        await opened(estate, "B2")
        await unlock(estate, "B2", skip=False)
        await flows(estate, "B2", "{}, 7")
        assert not estate.views()
        assert {(b"8",), (b"5",), (b"10",)} <= estate.rows("c").keys()
        assert "b" not in dict(estate.columns(estate.target, f"{estate.db}.t"))


async def test_case_063_in_the_other_order(estate: ShardedEstate) -> None:
    estate.create("A1", "B1", "B2", table="(id INT PRIMARY KEY, b SMALLINT)")
    async with estate.merging():
        estate.ddl("A1", "MODIFY b MEDIUMINT")
        await flows(estate, "A1", "{}, 8000000")
        estate.ddl("B1", "MODIFY b BIGINT")
        await flows(estate, "B1", "{}, 5000000000")
        await flows(estate, "B2", "{}, 7")
        estate.ddl("B2", "MODIFY b BIGINT")
        estate.ddl("A1", "MODIFY b BIGINT")
        await flows(estate, "A1", "{}, 5000000000")
        await estate.settled()


async def test_recover_lock_and_dropped_columns(estate: ShardedEstate) -> None:
    """RECOVER_LOCK, DROP_COLUMN_EXEC_ERROR: with a start in between."""
    estate.create("A1", "B1", table=TWO)
    async with estate.merging():
        estate.ddl("A1", "ADD c INT")
        await flows(estate, "A1", "{}, 1, 2")
        estate.ddl("B1", "DROP b")
        await flows(estate, "B1", "{}")
        estate.ddl("A1", "DROP b")
        await flows(estate, "A1", "{}, 3")
    estate.ddl("B1", "ADD b INT DEFAULT 6")
    async with estate.merging():
        await flows(estate, "B1", "{}, DEFAULT")
        await flows(estate, "A1", "{}, 4")
        estate.ddl("B1", "ADD c INT")
        estate.ddl("A1", "ADD b INT DEFAULT 6")
        await flows(estate, "A1", "{}, 5, 6")
        await flows(estate, "B1", "{}, 7, 8")
        await estate.settled()


async def test_a_shard_gets_an_unused_name(estate: ShardedEstate) -> None:
    """RENAME_TABLE, of a shard that is a column ahead."""
    estate.create("A1", "B1", table=TWO)
    async with estate.merging():
        estate.ddl("A1", "ADD c INT DEFAULT 7")
        await flows(estate, "A1", "{}, 1, 2")
        old, new = estate.name("A1"), estate.name("A5")
        estate.server("A1").execute(f"RENAME TABLE {old} TO {new}")
        estate.shards = ["A5", "B1"]
        await flows(estate, "A5", "{}, 3, 4")
        await flows(estate, "B1", "{}, 5")
        estate.ddl("B1", "ADD c INT DEFAULT 7")
        await flows(estate, "B1", "{}, 5, 6")
        await estate.settled()


PARTITIONED = (
    "(id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (1000),"
    " PARTITION p1 VALUES LESS THAN (2000))"
)


async def test_partitions(estate: ShardedEstate) -> None:
    """ADD_DROP_PARTITIONS: one more at the end flows, one that goes waits for all."""
    estate.create("A1", "B1", table=PARTITIONED)
    async with estate.merging():
        estate.ddl("A1", "ADD PARTITION (PARTITION p2 VALUES LESS THAN (3000))")
        estate.insert("A1", "2500")
        await flows(estate, "A1", "{}")
        await flows(estate, "B1", "{}")
        assert (b"2500",) in estate.rows("id")
        estate.ddl("B1", "ADD PARTITION (PARTITION p2 VALUES LESS THAN (3000))")
        estate.insert("B1", "2600")
        await flows(estate, "B1", "{}")
        assert not estate.views()
        estate.insert("A1", "1500")
        estate.insert("B1", "1600")
        estate.ddl("A1", "DROP PARTITION p1")
        await opened(estate, "A1")
        await flows(estate, "B1", "{}")
        estate.ddl("B1", "DROP PARTITION p1")
        await flows(estate, "A1", "{}")
        await flows(estate, "B1", "{}")
        await estate.settled()


async def test_partitions_come_to_the_target_with_the_last_shard(estate: ShardedEstate) -> None:
    estate.create("A1", "B1", "B2")
    async with estate.merging():
        for shard in ("A1", "B1"):
            estate.ddl(shard, "PARTITION BY HASH (id) PARTITIONS 3")
            await flows(estate, shard, "{}")
        await flows(estate, "B2", "{}")
        there = f"SHOW CREATE TABLE {estate.db}.t"
        assert "PARTITION" not in estate.target.execute(there)[0][1]
        estate.ddl("B2", "PARTITION BY HASH (id) PARTITIONS 3")
        await flows(estate, "B2", "{}")
        await flows(estate, "A1", "{}")
        await estate.settled()
        assert "PARTITION" in estate.target.execute(there)[0][1]


async def test_a_column_that_the_target_has_and_no_shard(estate: ShardedEstate) -> None:
    """Older rows of all shards have the target's default in it, also where theirs is another."""
    estate.create("A1", "B1")
    estate.target.execute(f"ALTER TABLE {estate.db}.t ADD c INT DEFAULT 8, ADD d INT DEFAULT 7")
    estate.insert("A1", "9001")
    async with estate.merging():
        for shard in ("A1", "B1"):
            estate.ddl(shard, "ADD d INT DEFAULT 7")
            await flows(estate, shard, "{}, 1")
        estate.ddl("A1", "ADD c INT DEFAULT 4")
        estate.run("A1", "UPDATE {t} SET c = 5 WHERE id < 9001")
        estate.ddl("B1", "ADD c INT DEFAULT 8")
        await flows(estate, "A1", "{}, 1, 2")
        await flows(estate, "B1", "{}, 1, 2")
        await estate.settled()


async def test_a_table_without_a_key_keeps_a_column_until_all_have_dropped_it(
    estate: ShardedEstate,
) -> None:
    estate.create("A1", "B1", table="(id INT, b INT)")
    async with estate.merging():
        for shard in estate.shards:
            await flows(estate, shard, "{}, 1")
        estate.ddl("A1", "DROP b")
        [lock] = await opened(estate, "A1")
        assert "no key" in lock.reason
        await flows(estate, "B1", "{}, 2")
        estate.ddl("B1", "DROP b")
        for shard in estate.shards:
            await flows(estate, shard, "{}")
        await estate.settled()


async def test_what_the_rows_of_the_target_refuse(estate: ShardedEstate) -> None:
    """A unique key that two shards break, values that one has cut without strict mode: the target
    stays as it is, and says so; rows flow. It follows once its rows are corrected: those of the
    key by somebody, the others by the task."""
    estate.create("A1", "B1", table="(id INT PRIMARY KEY, b INT, s VARCHAR(9))")
    async with estate.merging():
        await flows(estate, "A1", "{}, 1, 'abcdefgh'")
        await flows(estate, "B1", "{}, 1, 'abc'")
        for shard in estate.shards:
            estate.ddl(shard, "ADD UNIQUE KEY u (b)")
            await flows(estate, shard, "{}, 2, 'c'")
        await estate.caught_up()
        await estate.equal()
        [status] = lock_statuses(estate.db, estate.running)
        assert "Duplicate entry" in status.reason
        assert [text.partition("`: ")[0].rpartition(" ")[2] for text in status.remedies] == [
            "exec",
            "skip",
        ]
        await unlock(estate, "B1", skip=False)
        with anyio.fail_after(PATIENCE):
            while not (locks := estate.views()) or locks[0].resolving:
                await anyio.sleep(LOOK_SECONDS)
        estate.run("B1", "UPDATE {t} SET b = b + 10")
    async with estate.merging():
        await flows(estate, "A1", "{}, 3, 'd'")
        await estate.caught_up()
        await opened(estate, "B1")
        await unlock(estate, "B1", skip=False)
        await opened(estate)
        narrower = "ALTER TABLE {t} MODIFY s VARCHAR(3)"
        for shard, mode in (("A1", ""), ("B1", "STRICT_ALL_TABLES")):
            text = narrower.format(t=estate.name(shard))
            estate.server(shard).execute(f"SET sql_mode = '{mode}'", text)
        await flows(estate, "B1", "{}, 4, 'e'")
        # The task tries it again when the target has the values that the first one has cut.
        await estate.equal()
        await opened(estate)
        await estate.settled()
        there = estate.target.execute(f"SHOW INDEX FROM {estate.db}.t")
        assert "u" in [index[2] for index in there]


async def test_a_column_that_becomes_too_narrow_for_the_rows_without_it(
    estate: ShardedEstate,
) -> None:
    """The target keeps it wide: a new row of the other shard still gets the default of its ADD."""
    estate.create("A1", "B1")
    async with estate.merging():
        estate.ddl("A1", "ADD c VARCHAR(9) DEFAULT 'abcdefgh'", "MODIFY c VARCHAR(3)")
        await flows(estate, "A1", "{}, 'abc'")
        await flows(estate, "B1", "{}")
        [lock] = await opened(estate, "A1")
        assert "without column c get 'abcdefgh', which varchar(3)" in lock.reason
        await unlock(estate, "A1", skip=False)
        with anyio.fail_after(PATIENCE):
            while not (locks := estate.views()) or locks[0].resolving:
                await anyio.sleep(LOOK_SECONDS)
        await flows(estate, "B1", "{}")
        assert estate.rows("c") == {(b"abc",): 1, (b"abcdefgh",): 2}
        estate.ddl("B1", "ADD c VARCHAR(9) DEFAULT 'abcdefgh'")
        await flows(estate, "B1", "{}, 'x'")
        await opened(estate)


async def test_ten_steps_while_a_source_stands_still(estate: ShardedEstate) -> None:
    estate.create("A1", "B1", table=TWO)
    async with estate.merging():
        await flows(estate, "B1", "{}, 1")
        for number in range(10):
            estate.ddl("A1", f"ADD c{number} INT DEFAULT {number}")
            await flows(estate, "A1", "{}, 1" + ", 2" * (number + 1))
        await flows(estate, "B1", "{}, 1")
        adding = ", ".join(f"ADD c{number} INT DEFAULT {number}" for number in range(10))
        estate.ddl("B1", adding)
        await flows(estate, "B1", "{}, 1" + ", 3" * 10)
        await estate.settled()


async def test_names_that_have_gone_stay_gone_where_they_are_read_again(
    estate: ShardedEstate,
) -> None:
    """An open statement keeps the position back; a shard has got another name since, one went."""
    estate.create("A1", "A2", "A3", "B1", table=TWO)
    async with estate.merging():
        for shard in estate.shards:
            await flows(estate, shard, "{}, 1")
        estate.ddl("A1", "CHANGE b c INT")
        await opened(estate, "A1")
        estate.run("A2", f"RENAME TABLE {{t}} TO {estate.name('A5')}")
        await flows(estate, "A5", "{}, 2")
        estate.run("A3", "DROP TABLE {t}")
        await flows(estate, "A5", "{}, 3")
    estate.shards = ["A1", "A5", "B1"]
    async with estate.merging():
        for shard in ("A5", "B1"):
            estate.ddl(shard, "CHANGE b c INT")
        for shard in estate.shards:
            await flows(estate, shard, "{}, 4")
        assert not estate.views()


async def test_a_key_that_some_shards_have_is_an_index_of_the_target(
    estate: ShardedEstate,
) -> None:
    """By which the rows of all are found, as long as it is no key."""
    estate.create("A1", "B1", "B2", table="(id INT NOT NULL, b INT, PRIMARY KEY (id))")

    def indexed() -> set[object]:
        found = estate.target.execute(f"SHOW INDEX FROM {estate.db}.t")
        return {(index[4], index[1]) for index in found}

    async def changed(shape: str = "{}, 1") -> None:
        for shard in estate.shards:
            await flows(estate, shard, shape)
            estate.run(shard, "UPDATE {t} SET b = b + 1")
            estate.run(shard, "DELETE FROM {t} WHERE b > 2 LIMIT 1")

    async with estate.merging():
        await changed()
        estate.ddl("A1", "DROP PRIMARY KEY")
        estate.insert("A1", "7, 7", "7, 7", "7, 8")
        await changed()
        await estate.settled()
        assert indexed() == {("id", 1)}
        estate.ddl("B1", "ADD c INT NOT NULL DEFAULT 3, DROP PRIMARY KEY")
        await flows(estate, "B1", "{}, 1, 2")
        assert indexed() == {("id", 1)}
    async with estate.merging():
        estate.ddl("B1", "DROP c")
        estate.ddl("B2", "MODIFY id BIGINT NOT NULL")
        await changed()
        # Found by all of its columns, until no shard has the key.
        estate.ddl("B2", "DROP PRIMARY KEY")
        await changed()
        assert indexed() == set()
        for shard in estate.shards:
            estate.run(shard, "DELETE FROM {t} WHERE id = 7")
            estate.ddl(shard, "MODIFY id BIGINT NOT NULL, ADD PRIMARY KEY (id)")
            await flows(estate, shard, "{}, 1")
        await changed()
        await estate.settled()
        assert indexed() == {("id", 0)}
        estate.ddl("B1", "DROP PRIMARY KEY")
        await changed()
        assert indexed() == {("id", 1)}
        estate.ddl("B1", "ADD PRIMARY KEY (id)")
        await changed()
        await estate.settled()
        assert indexed() == {("id", 0)}
