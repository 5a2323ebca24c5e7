"""SHOW CREATE TABLE of each kind of server, read, written again, and shown again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pymysql
import pytest

from replicator.ddl.parser.table_text import table_definition
from replicator.ddl.rewrite.table_sql import create_table_sql
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from tests.support.values.definitions import Parts, singles, words_of

WALKS = 200
LEAST = 50
SERVERS = (
    "mysql56_source",
    "mysql_source",
    "mariadb_source",
    "mariadb11_source",
    pytest.param("tidb_target", marks=pytest.mark.slow),
)


@pytest.fixture(params=SERVERS)
def shown(request: pytest.FixtureRequest, database_name: str) -> Iterator[Shown]:
    server: DatabaseServer = request.getfixturevalue(request.param)
    server.execute(
        f"CREATE DATABASE {database_name} CHARACTER SET utf8mb4",
        f"CREATE TABLE {database_name}.parent (id INT PRIMARY KEY)",
    )
    yield Shown(server, database_name)
    server.execute(f"DROP DATABASE {database_name}")


class Shown:
    """Makes tables at a server, and reads their definitions."""

    def __init__(self, server: DatabaseServer, schema: str) -> None:
        self._connection = server.connect(database=schema, charset="utf8mb4")
        self.schema = schema

    def created(self, sql: str) -> str | None:
        """What the server shows of a table ``t`` made by this; None if it refuses the statement."""
        with self._connection.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS t")
            try:
                cursor.execute(sql)
            except pymysql.err.MySQLError:
                return None
            cursor.execute("SHOW CREATE TABLE t")
            return str(cursor.fetchall()[0][1])

    def made(self, rest: str) -> str | None:
        """As `created`, from what stands behind the name."""
        names = {"{parent}": "parent", "{schema}": self.schema, "{name}": "t"}
        for name, value in names.items():
            rest = rest.replace(name, value)
        return self.created(f"CREATE TABLE t {rest}")


def difference(shown: Shown, text: str) -> str:
    """What a definition loses when it is read and written; empty if nothing."""
    table = table_definition(text)
    if unknown := list(table.all_unknown):
        return f"unknown: {unknown} in {text}"
    written = create_table_sql(TableName(shown.schema, "t"), table)
    # MySQL adds CHARACTER SET to the columns of its own text: not what it showed counts.
    itself, again = shown.created(text), shown.created(written)
    if again != itself:
        return f"{text}\nwas written as\n{written}\nwhich is\n{again}"
    lost = words_of(text) - words_of(written)
    return f"{lost} lost of {text}" if lost else ""


def compared(shown: Shown, definitions: Iterable[str]) -> int:
    """Compare all that the server accepts; how many these are."""
    texts = [text for rest in definitions if (text := shown.made(rest)) is not None]
    found = [lost for text in texts if (lost := difference(shown, text))]
    assert not found, f"{len(found)} of {len(texts)}:\n" + "\n\n".join(found)
    return len(texts)


def test_each_part_of_a_definition_is_read_and_written_without_a_loss(shown: Shown) -> None:
    assert compared(shown, (rest for _, _, rest in singles())) > LEAST


@pytest.mark.slow
def test_definitions_of_many_parts_are_read_and_written_without_a_loss(shown: Shown) -> None:
    parts = Parts()
    for kind, part, rest in singles():
        if shown.made(rest) is not None:
            getattr(parts, kind).append(part)
    assert compared(shown, map(parts.random, range(WALKS))) > WALKS // 4
