"""Targets made like a shard, on real servers: the same structure but for what is left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from replicator.downstream.ddl.creation import (
    CreatedTarget,
    TargetNotCreatedError,
    create_target,
    read_pattern,
)
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from tests.support.values.table_structures import EVERYWHERE, MARIADB, structure


@pytest.fixture(params=["mariadb_source", "mysql56_source"])
def shard(request: pytest.FixtureRequest) -> DatabaseServer:
    server: DatabaseServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture
def names(
    shard: DatabaseServer, mariadb_target: DatabaseServer, database_name: str
) -> Iterator[tuple[str, str]]:
    """The database of the shards, and that of the targets, which does not exist yet."""
    there, here = database_name, f"{database_name}_merged"
    shard.execute(f"CREATE DATABASE {there} CHARACTER SET latin1 COLLATE latin1_spanish_ci")
    yield there, here
    for server in (shard, mariadb_target):
        for database in (there, here):
            server.execute(f"DROP DATABASE IF EXISTS {database}")


def connected(server: DatabaseServer, **changes: Any) -> Connection:
    address = DatabaseAddress(server.host, server.port, server.user, server.password)
    return Connection(replace(address, **changes))


async def create_like(
    shard: DatabaseServer, target: DatabaseServer, name: TableName, new: TableName
) -> CreatedTarget:
    source, downstream = connected(shard), connected(target)
    try:
        return await create_target(downstream, new, await read_pattern(source, name))
    finally:
        source.close()
        downstream.close()


@pytest.mark.parametrize(
    ("shard", "kind"),
    [
        # In every run that server has shards of these kinds whose target is on another.
        *(pytest.param("mysql56_source", kind, marks=pytest.mark.slow) for kind in EVERYWHERE),
        *(("mariadb_source", kind) for kind in EVERYWHERE | MARIADB),
    ],
    indirect=["shard"],
)
async def test_the_same_structure_on_the_same_kind_of_server(
    shard: DatabaseServer, names: tuple[str, str], kind: str
) -> None:
    there, here = names
    shard.execute(f"CREATE TABLE {there}.t_1 {(EVERYWHERE | MARIADB)[kind]}")
    created = await create_like(shard, shard, TableName(there, "t_1"), TableName(here, "x`y"))
    assert created.created
    assert (created.foreign_keys, created.engine) == ((), "")
    assert (created.collations, created.warnings) == ((), ())
    assert created.auto_increment == ("id" if kind == "counter" else "")
    assert structure(shard, here, "x`y") == structure(shard, there, "t_1")
    text = shard.execute(f"SHOW CREATE TABLE {here}.`x``y`")[0][1]
    assert " AUTO_INCREMENT=77" not in text


@pytest.mark.parametrize("kind", EVERYWHERE)
async def test_the_same_columns_and_keys_on_another_kind_of_server(
    shard: DatabaseServer, mariadb_target: DatabaseServer, names: tuple[str, str], kind: str
) -> None:
    there, here = names
    shard.execute(f"CREATE TABLE {there}.t_1 {EVERYWHERE[kind]}")
    await create_like(shard, mariadb_target, TableName(there, "t_1"), TableName(here, "t"))
    for what in ("columns", "keys"):
        assert written_alike(structure(mariadb_target, here, "t")[what]) == written_alike(
            structure(shard, there, "t_1")[what]
        )
    database = mariadb_target.execute(f"SHOW CREATE DATABASE {here}")[0][1]
    assert "latin1_spanish_ci" in database


@pytest.mark.parametrize("target", ["mysql_source", "mariadb_target", "mariadb11_source"])
async def test_columns_that_mysql_hides_are_hidden(
    mysql_source: DatabaseServer, request: pytest.FixtureRequest, database_name: str, target: str
) -> None:
    server: DatabaseServer = request.getfixturevalue(target)
    there, here = TableName(database_name, "t_1"), TableName(f"{database_name}_merged", "t")
    mysql_source.execute(
        f"CREATE DATABASE {there.schema}",
        f"CREATE TABLE {there.quoted} (`invisible` INT INVISIBLE, b INT DEFAULT 1 INVISIBLE"
        " COMMENT 'INVISIBLE */', c INT, KEY k (c) INVISIBLE)",
    )
    try:
        await create_like(mysql_source, server, there, here)
        server.execute(f"INSERT INTO {here.quoted} VALUES (7)")
        assert server.execute(f"SELECT * FROM {here.quoted}") == ((7,),)
        assert server.execute(f"SELECT `invisible`, b, c FROM {here.quoted}") == ((None, 1, 7),)
    finally:
        for one in (mysql_source, server):
            one.execute(f"DROP DATABASE IF EXISTS {there.schema}")
            one.execute(f"DROP DATABASE IF EXISTS {here.schema}")


def written_alike(rows: Any) -> list[tuple[str, ...]]:
    """Names, types, charsets: what servers write in different ways (defaults, extras) left out."""
    kept = [row[:1] + row[2:6] + row[7:8] for row in rows]
    return [tuple(str(value).replace("utf8mb3", "utf8") for value in row) for row in kept]


async def test_a_charset_without_a_collation_means_the_shards_default(
    shard: DatabaseServer, names: tuple[str, str]
) -> None:
    """A target whose own default is another one, as that of newer servers and of TiDB is."""
    there, here = names
    shard.execute(
        f"CREATE TABLE {there}.t_1 (a VARCHAR(9), b VARCHAR(9) CHARACTER SET utf8mb4)"
        " CHARACTER SET latin1"
    )
    source = connected(shard)
    pattern = await read_pattern(source, TableName(there, "t_1"))
    assert pattern.default_collations["latin1"] == "latin1_swedish_ci"
    await create_target(
        source,
        TableName(here, "t"),
        replace(
            pattern,
            create_sql=pattern.create_sql.replace(" COLLATE=latin1_swedish_ci", "").replace(
                " COLLATE utf8mb4_general_ci", ""
            ),
            default_collations={"latin1": "latin1_bin", "utf8mb4": "utf8mb4_unicode_ci"},
        ),
    )
    source.close()
    found = shard.execute(
        "SELECT COLLATION_NAME FROM information_schema.COLUMNS"
        f" WHERE TABLE_SCHEMA = '{here}' ORDER BY ORDINAL_POSITION"
    )
    assert found == (("latin1_bin",), ("utf8mb4_unicode_ci",))


async def test_what_tidb_lacks_is_told(
    shard: DatabaseServer, tidb_target: DatabaseServer, names: tuple[str, str]
) -> None:
    there, here = names
    shard.execute(
        f"CREATE TABLE {there}.t_1 (id INT PRIMARY KEY, a VARCHAR(9) CHARACTER SET latin1, b"
        " VARCHAR(9) CHARACTER SET utf8, c TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,"
        " UNIQUE KEY (a), FULLTEXT KEY (c)) CHARACTER SET utf8mb4 COLLATE utf8mb4_icelandic_ci"
    )
    try:
        created = await create_like(
            shard, tidb_target, TableName(there, "t_1"), TableName(here, "t")
        )
        assert created.collations == (
            ("latin1_swedish_ci", "latin1_bin"),
            ("utf8mb4_icelandic_ci", "utf8mb4_bin"),
        )
        assert any("FULLTEXT" in warning for warning in created.warnings)
        found = tidb_target.execute(
            "SELECT COLUMN_NAME, COLLATION_NAME FROM information_schema.COLUMNS"
            f" WHERE TABLE_SCHEMA = '{here}' ORDER BY ORDINAL_POSITION"
        )
        assert found[1:] == (("a", "latin1_bin"), ("b", "utf8_general_ci"), ("c", "utf8mb4_bin"))
        # The stand-in tells more texts apart than the shard's, never fewer.
        tidb_target.execute(f"INSERT INTO {here}.t (id, a) VALUES (1, 'x'), (2, 'X')")
        database = tidb_target.execute(f"SHOW CREATE DATABASE {here}")[0][1]
        assert "DEFAULT CHARACTER SET latin1" in database
        shard.execute(f"CREATE TABLE {there}.t_2 (a VARCHAR(9) CHARACTER SET koi8r)")
        with pytest.raises(TargetNotCreatedError, match="koi8r") as caught:
            await create_like(shard, tidb_target, TableName(there, "t_2"), TableName(here, "u"))
        assert caught.value.code == 1115
    finally:
        tidb_target.execute(f"DROP DATABASE IF EXISTS {here}")


async def test_foreign_keys_are_left_out_and_told(
    shard: DatabaseServer, names: tuple[str, str]
) -> None:
    there, here = names
    shard.execute(
        f"CREATE TABLE {there}.p (id INT PRIMARY KEY)",
        f"CREATE TABLE {there}.t_1 (a INT, b INT, `c)` INT PRIMARY KEY,"
        f" CONSTRAINT up FOREIGN KEY (a) REFERENCES {there}.p (id) ON DELETE SET NULL,"
        f" FOREIGN KEY (b) REFERENCES {there}.t_1 (`c)`))",
    )
    created = await create_like(shard, shard, TableName(there, "t_1"), TableName(here, "t"))
    assert len(created.foreign_keys) == 2
    assert any("`up` FOREIGN KEY (`a`)" in found for found in created.foreign_keys)
    assert "FOREIGN" not in shard.execute(f"SHOW CREATE TABLE {here}.t")[0][1]
    kept = structure(shard, here, "t")
    assert kept == structure(shard, there, "t_1")


async def test_names_of_checks_that_other_tables_have_are_left_out(
    mariadb_source: DatabaseServer, mysql_target: DatabaseServer, database_name: str
) -> None:
    """MySQL has the name of a CHECK once in a database, MariaDB once in a table."""
    here = f"{database_name}_merged"
    mariadb_source.execute(f"CREATE DATABASE {database_name}")
    for table in ("t", "u"):
        mariadb_source.execute(
            f"CREATE TABLE {database_name}.{table} (a INT PRIMARY KEY, CONSTRAINT c CHECK (a > 0))"
        )
        name = TableName(database_name, table)
        await create_like(mariadb_source, mysql_target, name, TableName(here, table))
        ((_, shown),) = mysql_target.execute(f"SHOW CREATE TABLE {here}.{table}")
        assert "CHECK" in str(shown)


@pytest.mark.parametrize(
    ("shard", "engine"),
    [
        *(("mysql56_source", engine) for engine in ("MyISAM", "MEMORY")),
        *(("mariadb_source", engine) for engine in ("MyISAM", "MEMORY", "Aria")),
    ],
    indirect=["shard"],
)
async def test_a_table_that_cannot_roll_back_is_made_as_one_that_can(
    shard: DatabaseServer, names: tuple[str, str], engine: str
) -> None:
    there, here = names
    options = "ROW_FORMAT=FIXED" if engine == "MyISAM" else ""
    shard.execute(
        f"CREATE TABLE {there}.t_1 (id INT PRIMARY KEY, a CHAR(5)) ENGINE={engine} {options}"
    )
    created = await create_like(shard, shard, TableName(there, "t_1"), TableName(here, "t"))
    assert created.engine == engine
    table = shard.execute(
        f"SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{here}'"
    )
    assert table == (("InnoDB",),)


@pytest.mark.parametrize("shard", ["mariadb_source"], indirect=True)
async def test_keys_that_would_become_equal_are_not_made(
    shard: DatabaseServer, mysql56_source: DatabaseServer, names: tuple[str, str]
) -> None:
    there, here = names
    text = "VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_swedish_nopad_ci"
    shard.execute(
        f"CREATE TABLE {there}.t_1 (id INT PRIMARY KEY, a {text}, UNIQUE KEY a (a))",
        f"CREATE TABLE {there}.u_1 (id INT PRIMARY KEY, a {text})",
    )
    try:
        with pytest.raises(TargetNotCreatedError, match="by trailing spaces"):
            await create_like(shard, mysql56_source, TableName(there, "t_1"), TableName(here, "t"))
        new = TableName(here, "u")
        created = await create_like(shard, mysql56_source, TableName(there, "u_1"), new)
        assert created.collations == (("latin1_swedish_nopad_ci", "latin1_bin"),)
        assert mysql56_source.execute(f"SHOW TABLES FROM {here}") == (("u",),)
    finally:
        mysql56_source.execute(f"DROP DATABASE IF EXISTS {here}")


async def test_what_is_there_already_stays_as_it_is(
    shard: DatabaseServer, mariadb_target: DatabaseServer, names: tuple[str, str]
) -> None:
    there, here = names
    shard.execute(f"CREATE TABLE {there}.t_1 (id INT PRIMARY KEY)")
    mariadb_target.execute(f"CREATE DATABASE {here} CHARACTER SET utf8mb4")
    name, new = TableName(there, "t_1"), TableName(here, "t")
    created = await create_like(shard, mariadb_target, name, new)
    assert created.created
    mariadb_target.execute(f"ALTER TABLE {here}.t ADD COLUMN more INT")
    again = await create_like(shard, mariadb_target, name, new)
    assert again == CreatedTarget(created=False)
    assert "more" in mariadb_target.execute(f"SHOW CREATE TABLE {here}.t")[0][1]
    assert "utf8mb4" in mariadb_target.execute(f"SHOW CREATE DATABASE {here}")[0][1]


async def test_a_refusal_tells_the_statement_and_the_way_out(
    shard: DatabaseServer, names: tuple[str, str]
) -> None:
    """A key that only the shard's engine takes."""
    there, here = names
    shard.execute(
        f"CREATE TABLE {there}.t_1 (a INT, b INT NOT NULL AUTO_INCREMENT, PRIMARY KEY (a, b))"
        " ENGINE=MyISAM"
    )
    with pytest.raises(TargetNotCreatedError) as caught:
        await create_like(shard, shard, TableName(there, "t_1"), TableName(here, "t"))
    error = caught.value
    assert error.code == 1075
    assert f"CREATE TABLE IF NOT EXISTS `{here}`.`t` (" in error.statement
    assert error.statement in str(error)
    assert any("by hand" in way and "replicator resume" in way for way in error.remedies)
    # As the remedy says: with the table made by hand it goes on.
    shard.execute(f"CREATE TABLE {here}.t (a INT, b INT NOT NULL, PRIMARY KEY (a, b))")
    created = await create_like(shard, shard, TableName(there, "t_1"), TableName(here, "t"))
    assert not created.created


async def test_a_type_is_refused_rather_than_changed(
    mariadb_source: DatabaseServer, mariadb_target: DatabaseServer, database_name: str
) -> None:
    """Not strict, a server makes MEDIUMTEXT of a VARCHAR that is too long for the row's charset."""
    source, target = connected(mariadb_source), connected(mariadb_target)
    mariadb_source.execute(f"CREATE DATABASE {database_name}")
    mariadb_source.execute(
        f"CREATE TABLE {database_name}.t (a VARCHAR(60000) CHARACTER SET latin1)"
    )
    pattern = await read_pattern(source, TableName(database_name, "t"))
    wider = pattern.create_sql.replace("latin1_swedish_ci", "utf8mb4_bin").replace(
        "latin1", "utf8mb4"
    )
    try:
        with pytest.raises(TargetNotCreatedError) as caught:
            await create_target(
                target, TableName(database_name, "t"), replace(pattern, create_sql=wider)
            )
        assert caught.value.code == 1074
    finally:
        source.close()
        target.close()


async def test_quotes_of_the_task_files_session_do_not_matter(
    shard: DatabaseServer, mariadb_target: DatabaseServer, names: tuple[str, str]
) -> None:
    there, here = names
    shard.execute(f"CREATE TABLE {there}.t_1 {EVERYWHERE['comments']}")
    source = connected(shard)
    target = connected(mariadb_target, session=(("sql_mode", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES"),))
    await create_target(
        target, TableName(here, "t"), await read_pattern(source, TableName(there, "t_1"))
    )
    comments = "SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{}'"
    assert mariadb_target.execute(comments.format(here)) == shard.execute(comments.format(there))
    source.close()
    target.close()


async def test_a_missing_privilege(
    shard: DatabaseServer, mariadb_target: DatabaseServer, names: tuple[str, str]
) -> None:
    there, here = names
    shard.execute(f"CREATE TABLE {there}.t_1 (id INT PRIMARY KEY)")
    user = there
    mariadb_target.execute(
        f"GRANT SELECT, CREATE ON {here}.* TO {user}@'127.0.0.1' IDENTIFIED BY 'secret'"
    )
    source, target = connected(shard), connected(mariadb_target, user=user, password="secret")
    pattern = await read_pattern(source, TableName(there, "t_1"))
    with pytest.raises(TargetNotCreatedError, match="denied") as caught:
        await create_target(target, TableName("elsewhere", "t"), pattern)
    assert caught.value.statement.startswith("CREATE DATABASE IF NOT EXISTS `elsewhere`")
    # Creating this database is within the privilege, and so is the table.
    assert (await create_target(target, TableName(here, "t"), pattern)).created
    source.close()
    target.close()


async def test_a_view_under_the_targets_name(shard: DatabaseServer, names: tuple[str, str]) -> None:
    there, here = names
    shard.execute(
        f"CREATE TABLE {there}.t_1 (id INT PRIMARY KEY)",
        f"CREATE DATABASE {here}",
        f"CREATE VIEW {here}.t AS SELECT 1 AS id",
    )
    with pytest.raises(TargetNotCreatedError, match="is a view"):
        await create_like(shard, shard, TableName(there, "t_1"), TableName(here, "t"))


async def test_a_view_is_no_pattern(shard: DatabaseServer, names: tuple[str, str]) -> None:
    there, here = names
    shard.execute(f"CREATE VIEW {there}.t_1 AS SELECT 1 AS id")
    with pytest.raises(TargetNotCreatedError, match="can't be told"):
        await create_like(shard, shard, TableName(there, "t_1"), TableName(here, "t"))
