"""Online schema changes, step by step as gh-ost and pt-online-schema-change make them."""

from __future__ import annotations

import anyio
import pytest
from structlog.testing import capture_logs

from actors.errors.faults import DdlEvent
from tests.support.tasks.merging import Merging
from tests.support.tasks.online_tools import gh_ost_steps, pt_osc_steps, until
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, fault_of, settles

MARIADB = pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
COLUMNS = "(id INT PRIMARY KEY, v VARCHAR(9))"


def pt_osc(table: str, change: str) -> list[str]:
    during = f"INSERT INTO {table} VALUES (1{table[-1]}, 'new')"
    return pt_osc_steps(table, change, definition=COLUMNS, during=during)


def plain(table: str, change: str) -> list[str]:
    return [f"ALTER TABLE {table} {change}"]


async def equal(merging: Merging) -> None:
    """Wait until the target equals the shards: with coordination that is not at the first end."""
    with anyio.move_on_after(PATIENCE):
        while not same(merging):
            await anyio.sleep(LOOK_SECONDS)
    assert merging.differences() == {}


def same(merging: Merging) -> bool:
    names = [
        {row[0] for row in merging.on(server, f"SHOW COLUMNS FROM {table}")}
        for server, table in ((merging.source, "x_1"), (merging.target, "x"))
    ]
    return names[0] == names[1] and merging.differences() == {}


@pytest.mark.parametrize("source", ["mariadb_source", "mysql56_source"], indirect=True)
@pytest.mark.parametrize("mode", ["", "pessimistic", "optimistic"])
async def test_shards_are_changed_each_in_its_own_way(merging: Merging, mode: str) -> None:
    merging.more["shard-mode"] = mode
    merging.create("x", COLUMNS, shards=3)
    change = "ADD COLUMN c INT DEFAULT 7"
    async with merging.running() as generation:
        merging.do(*(f"INSERT INTO x_{n} VALUES ({n}, 'a')" for n in (1, 2, 3)))
        merging.do(*gh_ost_steps("x_1", change))
        merging.do("INSERT INTO x_1 VALUES (21, 'b', 1)", "INSERT INTO x_2 VALUES (22, 'b')")
        merging.do(*pt_osc("x_2", change))
        merging.do(
            "UPDATE x_1 SET c = 5 WHERE id = 1",
            "DELETE FROM x_3",
            "INSERT INTO x_2 VALUES (32, 'c', 9)",
        )
        merging.do(*plain("x_3", change))
        merging.do("INSERT INTO x_3 VALUES (43, 'd', 4)")
        await equal(merging)
        await merging.caught_up(generation)
    tables = {row[0] for row in merging.on(merging.target, "SHOW TABLES")}
    assert tables == {"x"}


NARROWER = "MODIFY v VARCHAR(3)"


@MARIADB
@pytest.mark.parametrize(
    "steps", [gh_ost_steps("x_1", NARROWER), [f"ALTER IGNORE TABLE x_1 {NARROWER}"]]
)
async def test_values_that_were_cut_are_read_from_the_shard(
    merging: Merging, steps: list[str]
) -> None:
    """The tools copy rows with INSERT IGNORE, however strict the server is."""
    merging.more["shard-mode"] = "optimistic"
    merging.create("x", COLUMNS, shards=2)
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 'abcdefgh')")
        strict = "SET sql_mode='STRICT_ALL_TABLES'"
        merging.do(strict, *steps)
        merging.do(strict, "ALTER TABLE x_1 MODIFY v VARCHAR(9)")
        await settles(merging.differences, {})
        await merging.check(generation)
    assert merging.on(merging.target, "SELECT v FROM x") == (("abc",),)


@MARIADB
async def test_rows_that_a_tool_may_have_left_out_are_told(merging: Merging) -> None:
    merging.more["shard-mode"] = "optimistic"
    merging.create("x", COLUMNS, shards=2)
    with capture_logs() as logged:
        async with merging.running() as generation:
            merging.do("INSERT INTO x_1 VALUES (1, 'a'), (2, 'a')")
            merging.do(
                *gh_ost_steps("x_1", "ADD UNIQUE KEY (v)"), "INSERT INTO x_1 VALUES (3, 'b')"
            )
            await until(lambda: (3,) in merging.on(merging.target, "SELECT id FROM x"))
            await merging.caught_up(generation)
    [told] = [entry for entry in logged if entry["event"] == "ddl.other-old-rows"]
    assert "gone from the shard" in told["reason"]


@MARIADB
@pytest.mark.parametrize("mode", ["", "pessimistic"])
async def test_a_ghost_with_columns_in_another_order_is_read_as_it_is(
    merging: Merging, mode: str
) -> None:
    merging.more["shard-mode"] = mode
    merging.create("x", "(id INT PRIMARY KEY, a INT, b INT)")
    async with merging.running():
        merging.do("INSERT INTO x_1 VALUES (1, 10, 100)")
        merging.do("CREATE TABLE _x_1_new (id INT PRIMARY KEY, b INT, a INT)")
        merging.do("ALTER TABLE _x_1_new ADD c INT")
        merging.do("INSERT INTO _x_1_new SELECT id, b, a, NULL FROM x_1")
        merging.do("RENAME TABLE x_1 TO _x_1_old, _x_1_new TO x_1")
        merging.do("INSERT INTO x_1 VALUES (2, 200, 20, 9)")
        with anyio.move_on_after(PATIENCE):
            while len(merging.on(merging.target, "SELECT id FROM x")) < 2:
                await anyio.sleep(LOOK_SECONDS)
    there = merging.on(merging.target, "SELECT id, a, b, c FROM x ORDER BY id")
    assert there == ((1, 10, 100, None), (2, 20, 200, 9))


STEPS = len(gh_ost_steps("x_1", ""))


@MARIADB
@pytest.mark.parametrize("mode", ["", pytest.param("pessimistic", marks=pytest.mark.slow)])
async def test_a_restart_before_each_step(merging: Merging, mode: str) -> None:
    merging.more["shard-mode"] = mode
    merging.create("x", COLUMNS, shards=2)
    merging.do("INSERT INTO x_1 VALUES (1, 'a')", "INSERT INTO x_2 VALUES (2, 'a')")
    merging.on(merging.target, "INSERT INTO x VALUES (1, 'a'), (2, 'a')")
    change = "ADD COLUMN c INT, ADD INDEX i (v)"
    for number, steps in enumerate(
        zip(*(gh_ost_steps(t, change) for t in ("x_1", "x_2")), strict=True)
    ):
        async with merging.running() as generation:
            merging.do(*steps)
            if number < STEPS - 3:
                merging.do(f"INSERT INTO x_1 VALUES ({10 + number}, 'b')")
                merging.do(
                    f"INSERT INTO _x_1_gho (id, v) VALUES ({10 + number}, 'b')"
                ) if number > 2 else None
            await merging.caught_up(generation)
    async with merging.running():
        merging.do("INSERT INTO x_1 VALUES (90, 'z', 1)", "INSERT INTO x_2 VALUES (91, 'z', 2)")
        await equal(merging)


IN_FLIGHT = "ADD COLUMN c INT DEFAULT 7, ADD INDEX iv (v)"


@pytest.mark.parametrize(
    ("source", "mode"),
    [
        ("mariadb_source", "pessimistic"),
        pytest.param("mariadb_source", "", marks=pytest.mark.slow),
        pytest.param("mysql_source", "pessimistic", marks=pytest.mark.slow),
        pytest.param("mysql_source", "", marks=pytest.mark.slow),
    ],
    indirect=["source"],
)
async def test_a_ghost_of_before_the_start_takes_its_tables_place(
    merging: Merging, mode: str
) -> None:
    """What it had gone through is told by what the two tables are at the start."""
    merging.more["shard-mode"] = mode
    merging.create("x", COLUMNS, shards=2)
    *before, exchange, _, _ = gh_ost_steps("x_1", IN_FLIGHT)
    merging.do(*before)
    for _ in range(2):
        # The second start finds what the first has recorded.
        async with merging.running() as generation:
            merging.do("INSERT INTO x_1 (id, v) SELECT COUNT(*), 'a' FROM x_1")
            await merging.caught_up(generation)
    merging.do("DELETE FROM _x_1_gho", "INSERT INTO _x_1_gho SELECT id, v, 7 FROM x_1")
    async with merging.running():
        merging.do(exchange, "INSERT INTO x_1 VALUES (9, 'b', 9)")
        # Servers write it in different ways, and with another text the shards would not agree.
        there = str(merging.on(merging.source, "SHOW CREATE TABLE x_1"))
        number = "int(11)" if "int(11)" in there else "int"
        default = "'7'" if "DEFAULT '7'" in there else "7"
        merging.do(f"ALTER TABLE x_2 ADD COLUMN c {number} DEFAULT {default}, ADD KEY iv (v)")
        merging.do("INSERT INTO x_2 VALUES (10, 'b', 9)")
        await equal(merging)
    assert "KEY `iv` (`v`)" in str(merging.on(merging.target, "SHOW CREATE TABLE x"))


@MARIADB
async def test_a_rebuild_that_was_under_way_before_the_start(merging: Merging) -> None:
    merging.create("x", COLUMNS)
    *before, exchange, _, _ = gh_ost_steps("x_1", "ENGINE=InnoDB")
    merging.do(*before)
    async with merging.running():
        merging.do("INSERT INTO x_1 VALUES (1, 'a')", "INSERT INTO _x_1_gho VALUES (1, 'a')")
        merging.do(exchange, "INSERT INTO x_1 VALUES (2, 'b')")
        await equal(merging)


@MARIADB
@pytest.mark.parametrize("mode", ["", "pessimistic"])
async def test_a_ghost_of_before_the_start_that_does_not_tell_its_change(
    merging: Merging, mode: str
) -> None:
    merging.more["shard-mode"] = mode
    merging.create("x", COLUMNS)
    *before, exchange, _, _ = gh_ost_steps("x_1", "CHANGE v w VARCHAR(9)")
    merging.do(*(sql for sql in before if "INSERT IGNORE" not in sql))
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.do("INSERT INTO x_1 VALUES (1, 'a')", "INSERT INTO _x_1_gho VALUES (1, 'a')")
    merging.do(exchange)
    fault = await merging.fault()
    assert fault.event == "ddl.not-supported"
    assert "It was created before this task began to read" in fault.message
    assert "column v disappears and w appears" in fault.message
    assert isinstance(fault.about, DdlEvent)
    assert "replace" in fault.about.actions
    assert merging.on(merging.target, "SELECT * FROM x") == ((1, "a"),)


@MARIADB
@pytest.mark.parametrize("changed", ["_x_1_gho", "x_1"])
async def test_a_ghost_of_before_the_start_beside_a_change_behind_it(
    merging: Merging, changed: str
) -> None:
    """The structures of now are not those of the start."""
    merging.create("x", COLUMNS)
    *before, exchange, _, _ = gh_ost_steps("x_1", IN_FLIGHT)
    merging.do(*before)
    merging.generation()
    merging.do(f"CREATE INDEX late ON {changed} (v)")

    async def exchanged() -> None:
        async with merging.running() as generation:
            merging.do(exchange)
            await merging.caught_up(generation)

    fault = await fault_of(exchanged())
    assert fault.event == "ddl.not-supported"
    assert "was created before the position at which this task began to read" in fault.message


@MARIADB
async def test_a_ghost_of_before_the_copy_takes_its_tables_place_behind_it(
    merging: Merging,
) -> None:
    merging.mode = "all"
    merging.create("x", COLUMNS)
    *before, exchange, _, _ = gh_ost_steps("x_1", IN_FLIGHT)
    merging.do("INSERT INTO x_1 VALUES (1, 'a')", *before)
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do(exchange, "INSERT INTO x_1 VALUES (2, 'b', 2)")
        await equal(merging)
    assert {row[0] for row in merging.on(merging.target, "SHOW TABLES")} == {"x"}


@MARIADB
async def test_ghosts_are_not_copied(merging: Merging) -> None:
    merging.mode = "all"
    merging.more_schemas()
    merging.create("x", COLUMNS)
    *before, exchange, _, _ = gh_ost_steps("x_1", "ADD COLUMN c INT")
    merging.do("INSERT INTO x_1 VALUES (1, 'a')")
    merging.do(*pt_osc("x_1", "ADD COLUMN d INT")[:2])
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do(*before, exchange)
        await equal(merging)
    assert {row[0] for row in merging.on(merging.target, "SHOW TABLES")} == {"x"}


@MARIADB
async def test_without_it_they_are_tables_like_any(merging: Merging) -> None:
    merging.more["online-ddl"] = False
    merging.more_schemas()
    merging.create("x", COLUMNS)
    async with merging.running() as generation:
        merging.do(f"CREATE TABLE _x_1_gho {COLUMNS}", "INSERT INTO _x_1_gho VALUES (1, 'a')")
        await merging.caught_up(generation)
    assert merging.on(merging.target, "SELECT * FROM _x_1_gho") == ((1, "a"),)


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
@pytest.mark.parametrize(
    "steps",
    [
        [
            "CREATE TABLE _x_1_gho LIKE x_1",
            "ALTER TABLE _x_1_gho COMMENT 'x'",
            "ALTER TABLE x_1 MODIFY a INT AFTER b",
            "RENAME TABLE x_1 TO _x_1_del, _x_1_gho TO x_1",
        ],
        [
            "RENAME TABLE x_1 TO _x_1_old",
            "ALTER TABLE _x_1_old MODIFY a INT AFTER b",
            "RENAME TABLE _x_1_old TO x_1",
        ],
    ],
    ids=["table changed", "changed while away"],
)
async def test_a_table_whose_structure_is_not_the_one_followed(
    merging: Merging, steps: list[str]
) -> None:
    merging.create("x", "(id INT PRIMARY KEY, a INT, b INT)")
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.do(*steps, "INSERT INTO x_1 (id, a, b) VALUES (2, 10, 20)")
    fault = await merging.fault()
    assert fault.event == "ddl.not-supported"
    assert merging.on(merging.target, "SELECT * FROM x") == ()


@MARIADB
async def test_a_ghost_that_takes_a_free_place_is_a_fault(merging: Merging) -> None:
    merging.create("x", COLUMNS)
    merging.source.execute("SET GLOBAL binlog_row_metadata = FULL")
    steps = gh_ost_steps("x_1", "ADD c INT")

    async def run() -> None:
        async with merging.running() as generation:
            merging.do("INSERT INTO x_1 VALUES (1, 'a')")
            await merging.caught_up(generation)
            merging.do(*steps[:7], "RENAME TABLE x_1 TO y", "RENAME TABLE _x_1_gho TO x_1")
            merging.do("INSERT INTO x_1 VALUES (2, 'b', 2)")
            await merging.caught_up(generation)

    try:
        fault = await fault_of(run())
    finally:
        merging.source.execute("SET GLOBAL binlog_row_metadata = NO_LOG")
    assert fault.event == "ddl.not-supported"
    assert "x_1, which was dropped or renamed before" in str(fault)
