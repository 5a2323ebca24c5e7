"""A statement does on the target what it did at its shard: it runs there in the same context."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

import pymysql
import pytest
from structlog.testing import capture_logs

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.servers.mariadb11 import MariaDB11Server
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import fault_of, settles

MergingFrom = Callable[..., Merging]

pytestmark = pytest.mark.not_on_tidb("it has neither the charsets nor the modes")


@pytest.fixture(params=["mariadb_source", "mariadb11_source", "mysql56_source", "mysql_source"])
def source(request: pytest.FixtureRequest) -> DatabaseServer:
    """Each kind of source that writes its events differently."""
    server: DatabaseServer = request.getfixturevalue(request.param)
    return server


def charsets(server: DatabaseServer, database: str, table: str) -> dict[str, str]:
    rows = server.execute(
        "SELECT COLUMN_NAME, CHARACTER_SET_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA"
        f" = '{database}' AND TABLE_NAME = '{table}' AND CHARACTER_SET_NAME IS NOT NULL"
    )
    return {str(name): str(charset) for name, charset in rows}


def default_charset(server: DatabaseServer, database: str) -> str:
    rows = server.execute(
        "SELECT DEFAULT_CHARACTER_SET_NAME FROM information_schema.SCHEMATA"
        f" WHERE SCHEMA_NAME = '{database}'"
    )
    return str(rows[0][0])


async def test_a_new_table_has_the_charset_of_its_shard_s_database(merging: Merging) -> None:
    merging.create("t", "(id INT PRIMARY KEY)")
    merging.create("u", "", shards=0, with_target=False)
    merging.source.execute(f"ALTER DATABASE {merging.database} CHARACTER SET cp1251")
    async with merging.running() as generation:
        merging.do(
            "CREATE TABLE u_1 (id INT PRIMARY KEY, v VARCHAR(9)) COMMENT 'x'",
            "INSERT INTO u_1 VALUES (1, _utf8 x'D0B6')",
        )
        merging.shards("u", 1)
        await merging.check(generation)
    assert charsets(merging.target, merging.database, "u") == {"v": "cp1251"}


async def test_a_new_database_has_the_charset_of_its_shard_s_session(merging: Merging) -> None:
    merging.create("t", "(id INT PRIMARY KEY)")
    merging.more_schemas()
    name = f"{merging.database}_new"
    async with merging.running() as generation:
        merging.do(
            "SET collation_server = 'cp1251_general_ci'",
            f"CREATE DATABASE {name}",
            f"CREATE TABLE {name}.w (v VARCHAR(9))",
        )
        await merging.caught_up(generation)
    assert default_charset(merging.target, name) == "cp1251"
    assert charsets(merging.target, name, "w") == {"v": "cp1251"}


async def test_modes_that_change_what_a_statement_means(merging: Merging) -> None:
    merging.create("t", "(id INT PRIMARY KEY, v INT)")
    async with merging.running() as generation:
        merging.do("INSERT INTO t_1 VALUES (1, 5)")
        merging.do(
            "SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,REAL_AS_FLOAT,ALLOW_INVALID_DATES'",
            'ALTER TABLE t_1 ADD "r" REAL, ADD "s" CHAR(9) DEFAULT \'a\\\', '
            "ADD d DATE DEFAULT '2008-02-31'",
        )
        merging.do("INSERT INTO t_1 (id, r) VALUES (2, 0.1)")
        await merging.check(generation)
    kinds = merging.on(merging.target, "SHOW COLUMNS FROM t LIKE 'r'")
    assert str(kinds[0][1]) == "float"


async def test_the_moment_of_a_default_has_microseconds(merging: Merging) -> None:
    merging.create("t", "(id INT PRIMARY KEY)")
    async with merging.running() as generation:
        merging.do("INSERT INTO t_1 VALUES (1)")
        merging.do(
            "SET timestamp = 1600000000.123456, time_zone = '+05:30'",
            "ALTER TABLE t_1 ADD a DATETIME(6) DEFAULT now(6), ADD b TIMESTAMP(6) NULL"
            " DEFAULT now(6)",
        )
        await merging.check(generation)


async def test_timestamps_have_the_defaults_of_their_shard(merging: Merging) -> None:
    """Without explicit_defaults_for_timestamp the first one is set by each UPDATE."""
    settable = "5.6" not in str(merging.source.execute("SELECT VERSION()")[0][0])
    merging.create("t", "(id INT PRIMARY KEY)")
    off = ["SET explicit_defaults_for_timestamp = 0"] if settable else []
    async with merging.running() as generation:
        merging.do("INSERT INTO t_1 VALUES (1)")
        merging.do(*off, "SET timestamp = 1600000000", "ALTER TABLE t_1 ADD a TIMESTAMP")
        merging.do("INSERT INTO t_1 (id) VALUES (2)")
        await merging.check(generation)
    shown = str(merging.on(merging.target, "SHOW COLUMNS FROM t LIKE 'a'")[0])
    assert "'NO'" in shown
    assert "current_timestamp" in shown.lower()


async def test_texts_become_times_in_the_zone_of_the_source(
    merging_from: MergingFrom, start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "JST-9")
    server = start_server(MariaDBServer)
    merging = merging_from(server)
    merging.create("t", "(id INT PRIMARY KEY, v DATETIME)")
    async with merging.running() as generation:
        merging.do("INSERT INTO t_1 VALUES (1, '2024-01-01 12:00:00')")
        merging.do("SET time_zone = 'SYSTEM'", "ALTER TABLE t_1 MODIFY v TIMESTAMP NULL")
        await merging.check(generation)
    assert merging.on(merging.target, "SELECT v FROM t")[0][0] == datetime(2024, 1, 1, 3)


@pytest.mark.remedy("ddl.time-zone", "reload")
@pytest.mark.parametrize("rows", [False, True])
async def test_a_zone_with_a_summer_time_is_asked_for(
    merging_from: MergingFrom,
    start_server: StartServer,
    monkeypatch: pytest.MonkeyPatch,
    rows: bool,
) -> None:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    merging = merging_from(start_server(MariaDBServer))
    merging.create("t", "(id INT PRIMARY KEY, v DATETIME)")

    async def run() -> None:
        async with merging.running() as generation:
            merging.do(
                "SET time_zone = 'SYSTEM'",
                "ALTER TABLE t_1 ADD w DATETIME, ADD x TIMESTAMP NULL DEFAULT now()",
            )
            if rows:
                merging.do("INSERT INTO t_1 (id, v) VALUES (1, '2024-01-01 12:00:00')")
            merging.do("SET time_zone = 'SYSTEM'", "ALTER TABLE t_1 MODIFY v TIMESTAMP NULL")
            await merging.caught_up(generation)

    fault = await fault_of(run())
    assert fault.event == "ddl.time-zone"
    assert "MODIFY v" in str(fault)
    assert any("`replicator reload`" in way for way in fault.remedies)
    merging.more["timezone"] = "+01:00"
    merging.changed(mode="incremental")
    async with merging.running() as generation:
        await merging.check(generation)


@pytest.mark.parametrize("mode", ["", "pessimistic"])
async def test_a_zone_that_a_statement_tells_goes_before_that_of_the_task_file(
    merging_from: MergingFrom, mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    merging.more |= {"shard-mode": mode, "timezone": "+08:00"}
    merging.create("t", "(id INT PRIMARY KEY, v DATETIME)", shards=2)
    noon = "2011-01-01 12:00:00"
    async with merging.running() as generation:
        merging.do(f"INSERT INTO t_1 VALUES (1, '{noon}')", f"INSERT INTO t_2 VALUES (2, '{noon}')")
        for shard in ("t_1", "t_2"):
            merging.do(
                "SET time_zone = '+03:00'",
                f"ALTER TABLE {shard} ADD w TIMESTAMP NOT NULL DEFAULT '{noon}', MODIFY v TIMESTAMP"
                " NULL",
            )
        merging.do("INSERT INTO t_1 (id) VALUES (11)", "INSERT INTO t_2 (id) VALUES (12)")
        await settles(merging.differences, {})
        await merging.check(generation)


async def test_values_of_other_shards_are_never_cut(merging: Merging) -> None:
    """Where the shard's own session would have cut them, the target stays as wide as it is."""
    merging.create("t", "(id INT PRIMARY KEY, v VARCHAR(20))", shards=2)
    async with merging.running() as generation:
        merging.do("INSERT INTO t_2 VALUES (2, 'longer than nine')")
        merging.do("SET sql_mode = ''", "ALTER TABLE t_1 MODIFY v VARCHAR(9)")
        await merging.check(generation)
    assert merging.on(merging.target, "SELECT v FROM t") == (("longer than nine",),)


async def test_a_column_that_another_shard_has_brought_numbers_nothing(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", "(v INT)", shards=2)
    async with merging.running():
        merging.do("ALTER TABLE t_1 ADD id INT AUTO_INCREMENT PRIMARY KEY")
        merging.do("INSERT INTO t_1 VALUES (1, 1)")
        merging.do("ALTER TABLE t_2 ADD id INT AUTO_INCREMENT PRIMARY KEY")
        merging.do("INSERT INTO t_2 VALUES (2, 2)")
        await settles(merging.differences, {})


async def test_the_end_of_a_dump_keeps_the_row_0(merging: Merging) -> None:
    """As mysqldump and others end: keys and AUTO_INCREMENT come behind the rows."""
    merging.create("t", "(id INT NOT NULL)")
    merging.create("e", "(v INT)")
    async with merging.running() as generation:
        merging.do("INSERT INTO t_1 VALUES (0), (5)")
        merging.do("ALTER TABLE t_1 MODIFY id INT NOT NULL AUTO_INCREMENT, ADD PRIMARY KEY (id)")
        merging.do("ALTER TABLE e_1 ADD id INT NOT NULL AUTO_INCREMENT PRIMARY KEY")
        merging.do("INSERT INTO t_1 VALUES (NULL)", "UPDATE t_1 SET id = 9 WHERE id = 0")
        merging.do("INSERT INTO t_1 VALUES (0)", "INSERT INTO e_1 VALUES (1, 0), (2, NULL)")
        await merging.check(generation)


async def test_a_row_0_that_the_source_numbers_anew(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", "(id INT NOT NULL)")
    async with merging.running() as generation:
        merging.do("INSERT INTO t_1 VALUES (0)")
        merging.do("SET sql_mode = ''", "ALTER TABLE t_1 MODIFY id INT AUTO_INCREMENT KEY")
        merging.do("INSERT INTO t_1 VALUES (7)")
        await merging.caught_up(generation)
        await settles(merging.differences, {})


async def test_a_unique_key_never_removes_rows_of_other_shards(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", "(id INT PRIMARY KEY, v INT)", shards=2)
    async with merging.running() as generation:
        merging.do("INSERT INTO t_1 VALUES (1, 7)", "INSERT INTO t_2 VALUES (2, 7)")
        merging.do("ALTER IGNORE TABLE t_1 ADD UNIQUE (v)")
        await merging.check(generation)


def time_names(server: DatabaseServer) -> dict[int, object]:
    """The languages of months and days that a server takes, by their numbers."""
    found: dict[int, object] = {}
    for number in range(110):
        with suppress(pymysql.err.OperationalError):
            rows = server.execute(f"SET lc_time_names = {number}", "SELECT @@lc_time_names")
            found[number] = rows[0][0]
    return found


@pytest.mark.parametrize(
    "kind",
    [
        "mariadb_source",
        *(pytest.param(k, marks=pytest.mark.slow) for k in ("mariadb11_source", "mysql_source")),
    ],
)
async def test_names_of_months_are_in_the_language_of_the_session(
    merging_from: MergingFrom, request: pytest.FixtureRequest, kind: str
) -> None:
    merging = merging_from(request.getfixturevalue(kind))
    merging.create("t", "(id INT PRIMARY KEY, d DATE)")
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO t_1 VALUES (1, '2024-03-04')",
            # One that has no messages of its own, which the servers of tests may lack.
            "SET lc_time_names = 'fi_FI'",
            "ALTER TABLE t_1 ADD m VARCHAR(9) DEFAULT (DATE_FORMAT(d, '%M'))",
        )
        await merging.check(generation)
    both = (time_names(merging.source), time_names(merging.target))
    known = both[0].keys() & both[1].keys()
    assert len(known) > 50
    assert all(both[0][number] == both[1][number] for number in known)


async def test_names_in_square_brackets_are_refused(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", "(id INT PRIMARY KEY, a INT)")

    async def run() -> None:
        async with merging.running() as generation:
            merging.do("SET sql_mode = 'MSSQL'", "ALTER TABLE t_1 CHANGE [a] [b,c] INT")
            await merging.caught_up(generation)

    fault = await fault_of(run())
    assert fault.event == "ddl.not-supported"
    assert "may be in square brackets" in str(fault)


async def test_values_that_a_note_tells_of_are_reported(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    """The time of a DATETIME goes in strict mode, too."""
    merging = merging_from(mariadb_source)
    merging.create("t", "(id INT PRIMARY KEY, v DATETIME)")
    merging.target.execute("SET GLOBAL sql_notes = 0")
    try:
        with capture_logs() as logs:
            async with merging.running() as generation:
                merging.do("INSERT INTO t_1 VALUES (1, '2024-01-01 12:00:00')")
                merging.do("ALTER TABLE t_1 MODIFY v DATE")
                await merging.check(generation)
    finally:
        merging.target.execute("SET GLOBAL sql_notes = 1")
    [event] = [entry for entry in logs if entry["event"] == "ddl.values-changed"]
    assert event["count"] == 1


@pytest.mark.parametrize("number", [3, 257])
async def test_of_a_change_that_is_logged_in_two_halves(
    merging_from: Callable[..., Merging], start_server: StartServer, number: int
) -> None:
    """The number of the first half's GTID, in the second one, is no setting of the session."""
    source = start_server(MariaDB11Server)
    merging = merging_from(source)
    merging.create("x", "(id INT PRIMARY KEY)")
    async with merging.running() as generation:
        merging.do(
            "SET binlog_alter_two_phase = 1, explicit_defaults_for_timestamp = 1,"
            f" sql_mode = 'PIPES_AS_CONCAT', gtid_domain_id = 7, gtid_seq_no = {number}",
            "ALTER TABLE x_1 ADD t TIMESTAMP, ADD a VARCHAR(9) DEFAULT ('4' || '2')",
            "INSERT INTO x_1 (id) VALUES (1)",
        )
        await merging.check(generation)
    tables = [
        merging.on(server, f"SHOW CREATE TABLE {name}")[0][1]
        for server, name in ((source, "x_1"), (merging.target, "x"))
    ]
    columns = [
        [line for line in str(table).splitlines() if "`t`" in line or "`a`" in line]
        for table in tables
    ]
    assert columns[0] == columns[1]
