"""Columns that MariaDB hides stand in its row events: tables that have some are merged like any."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.servers.mariadb11 import MariaDB11Server
from tests.support.tasks.merging import Merging

LONG_KEYS = {
    "text": "(a TEXT UNIQUE)",
    "two": "(id INT PRIMARY KEY, a TEXT, b BLOB, v INT, UNIQUE (a, b), KEY (v), UNIQUE (v, b))",
    "named": "(id INT PRIMARY KEY, a VARCHAR(9), UNIQUE (a) USING HASH)",
    "needed": "(a VARCHAR(4000) NOT NULL UNIQUE, id INT INVISIBLE DEFAULT 5)",
}
VERSIONED = {
    "plain": "(id INT PRIMARY KEY, a VARCHAR(9)) WITH SYSTEM VERSIONING",
    "keyless": "(id INT, a VARCHAR(9) WITHOUT SYSTEM VERSIONING) WITH SYSTEM VERSIONING",
    "hashed": "(id INT, a VARCHAR(900), b TEXT UNIQUE) WITH SYSTEM VERSIONING",
    "period": "(id INT PRIMARY KEY, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, a VARCHAR(9),"
    " e TIMESTAMP(6) GENERATED ALWAYS AS ROW END INVISIBLE, PERIOD FOR SYSTEM_TIME (s, e))"
    " WITH SYSTEM VERSIONING",
}
SHOWN = dict.fromkeys(VERSIONED, "id, a")


@pytest.fixture(params=["mariadb_source", "mariadb_source_full", "mariadb11_source"])
def mariadb(request: pytest.FixtureRequest) -> DatabaseServer:
    """Each kind of MariaDB in turn."""
    server: DatabaseServer = request.getfixturevalue(request.param)
    return server


async def test_long_unique_keys(
    merging_from: Callable[..., Merging], mariadb: DatabaseServer
) -> None:
    merging = merging_from(mariadb)
    for name, columns in LONG_KEYS.items():
        merging.create(name, columns)
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO text_1 VALUES ('x'), ('y'), (NULL)",
            "INSERT INTO two_1 VALUES (1, 'x', 'y', 1), (2, NULL, 'y', 2)",
            "INSERT INTO named_1 VALUES (1, 'x'), (2, NULL)",
            "INSERT INTO needed_1 (a, id) VALUES ('x', 1), ('y', 2)",
        )
        await merging.check(generation)
        merging.do(
            "UPDATE text_1 SET a = 'z' WHERE a = 'x'",
            "DELETE FROM text_1 WHERE a = 'y'",
            "UPDATE two_1 SET b = 'z', id = id + 10",
            "UPDATE named_1 SET a = 'z'  WHERE id = 1",
            "UPDATE needed_1 SET a = 'z' WHERE id = 1",
            "DELETE FROM needed_1 WHERE id = 2",
            "ALTER TABLE text_1 ADD COLUMN n INT",
            "ALTER TABLE named_1 DROP KEY a",
            "ALTER TABLE two_1 ADD UNIQUE (a)",
            "INSERT INTO text_1 VALUES ('q', 4)",
            "INSERT INTO named_1 VALUES (4, 'z')",
            "INSERT INTO two_1 VALUES (4, 'q', NULL, 5)",
        )
        await merging.check(generation, {"needed": "a, id"})


async def test_versioned_tables_show_their_present_rows(
    merging_from: Callable[..., Merging], mariadb: DatabaseServer
) -> None:
    merging = merging_from(mariadb)
    # The end of time is later at MariaDB 11 than a TIMESTAMP of the target reaches.
    plain = [n for n in VERSIONED if n != "period" or not isinstance(mariadb, MariaDB11Server)]
    for name, columns in VERSIONED.items():
        merging.create(name, columns)
        if name in plain:
            merging.create(f"{name}_plain", columns, target=unversioned(columns))
    tables = [*VERSIONED, *(f"{name}_plain" for name in plain)]
    shown = dict.fromkeys(tables, "id, a")
    async with merging.running() as generation:
        for name in tables:
            merging.do(
                f"INSERT INTO {name}_1 (id, a) VALUES (1, 'x'), (2, 'y'), (3, 'z'), (4, 'w')",
                f"UPDATE {name}_1 SET a = 'u' WHERE id = 1",
                f"UPDATE {name}_1 SET a = 'x' WHERE id = 1",
                f"UPDATE {name}_1 SET id = 22 WHERE id = 2",
                f"DELETE FROM {name}_1 WHERE id = 3",
            )
        await merging.check(generation, shown)
        for name in tables:
            merging.do(
                "BEGIN",
                f"REPLACE INTO {name}_1 (id, a) VALUES (7, 'x')",
                f"UPDATE {name}_1 SET a = 'y' WHERE id = 7",
                f"DELETE FROM {name}_1 WHERE id = 7",
                "COMMIT",
                f"UPDATE {name}_1 SET a = 'p'",
                f"DELETE HISTORY FROM {name}_1",
                f"DELETE FROM {name}_1 WHERE id = 4",
            )
        await merging.check(generation, shown)


async def test_versioned_tables_are_changed(
    merging_from: Callable[..., Merging], mariadb: DatabaseServer
) -> None:
    merging = merging_from(mariadb)
    for name in ("plain",):
        merging.create(name, "(id INT PRIMARY KEY, a VARCHAR(9))")
    async with merging.running() as generation:
        merging.do(
            "SET system_versioning_alter_history = KEEP",
            "INSERT INTO plain_1 VALUES (1, 'x'), (2, 'y')",
            "ALTER TABLE plain_1 ADD SYSTEM VERSIONING",
            "UPDATE plain_1 SET a = 'z' WHERE id = 1",
            "ALTER TABLE plain_1 ADD COLUMN n INT",
            "UPDATE plain_1 SET n = 5",
            "DELETE FROM plain_1 WHERE id = 2",
            "ALTER TABLE plain_1 DROP SYSTEM VERSIONING",
            "UPDATE plain_1 SET n = 6",
        )
        await merging.check(generation)


async def test_tables_with_hidden_columns_are_made_and_copied(
    merging_from: Callable[..., Merging], mariadb: DatabaseServer
) -> None:
    merging = merging_from(mariadb)
    merging.mode = "all"
    tables = LONG_KEYS | VERSIONED
    for name, columns in tables.items():
        merging.create(name, columns, with_target=False)
        named = "a" if name == "text" else "id, a"
        values = "('x'), ('y')" if name == "text" else "(1, 'x'), (2, 'y')"
        merging.do(f"INSERT INTO {name}_1 ({named}) VALUES {values}")
        merging.do(f"UPDATE {name}_1 SET a = 'z' WHERE a = 'y'")
    shown = SHOWN | {"needed": "id, a"}
    async with merging.running() as generation:
        await merging.copied(generation)
        for name in tables:
            merging.do(f"UPDATE {name}_1 SET a = 'u' WHERE a = 'z'")
            merging.do(f"DELETE FROM {name}_1 WHERE a = 'x'")
        await merging.check(generation, shown)


def unversioned(columns: str) -> str:
    """The same table for a target that keeps no former rows."""
    columns = columns.replace("WITHOUT SYSTEM VERSIONING", "").replace("WITH SYSTEM VERSIONING", "")
    return (
        columns.replace("GENERATED ALWAYS AS ROW START", "NULL")
        .replace("GENERATED ALWAYS AS ROW END INVISIBLE", "NULL")
        .replace(", PERIOD FOR SYSTEM_TIME (s, e)", "")
    )


async def test_what_mysql_hides(
    merging_from: Callable[..., Merging], mysql_source: DatabaseServer
) -> None:
    merging = merging_from(mysql_source)
    merging.mode = "all"
    functional = "(id INT PRIMARY KEY, a VARCHAR(9), n INT INVISIBLE{})"
    merging.create(
        "functional",
        functional.format(", UNIQUE ((UPPER(a))), KEY ((id + n))"),
        target=functional.format(""),
    )
    merging.create("given", "(a INT)", with_target=False)
    merging.do(
        "DROP TABLE given_1",
        "SET sql_generate_invisible_primary_key = ON",
        "CREATE TABLE given_1 (a INT)",
        "INSERT INTO given_1 VALUES (1), (2)",
    )
    shown = "SET GLOBAL show_gipk_in_create_table_and_information_schema = "
    mysql_source.execute(shown + "OFF")
    try:
        async with merging.running() as generation:
            await merging.copied(generation)
            merging.do(
                "INSERT INTO functional_1 (id, a, n) VALUES (1, 'x', 2), (2, 'y', NULL)",
                "UPDATE functional_1 SET a = 'z' WHERE id = 1",
                "INSERT INTO given_1 VALUES (3)",
                "UPDATE given_1 SET a = 9 WHERE my_row_id = 1",
                "DELETE FROM given_1 WHERE my_row_id = 2",
            )
            await merging.check(generation, {"functional": "id, a, n", "given": "my_row_id, a"})
    finally:
        mysql_source.execute(shown + "ON")
