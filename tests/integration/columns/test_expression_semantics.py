"""Expressions of filters: what is evaluated here is what servers say, for random ones and rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing
from random import Random

import pymysql
import pytest

from replicator.downstream.rows.literals import NULL_FIELD
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.pipeline.plans.filter_columns import field_reader, filter_column, known_collation
from replicator.routing.expression.check import ExpressionCheck
from replicator.routing.expression.evaluation import EvaluationError, Row, Value, evaluator
from replicator.routing.expression.text import ExpressionText
from replicator.routing.expression.types import Checked, ExpressionError, FilterColumn
from replicator.sandbox.server import DatabaseServer
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import Table
from tests.support.servers.mysql56 import MySQL56Server
from tests.support.values.expressions import COLUMNS, random_expression, random_row

ROWS = 60
EXPRESSIONS = 300
OUT_OF_RANGE = 1690


class Bench:
    """A table of a server with random rows, and what the server and we say of expressions."""

    def __init__(self, server: DatabaseServer, table: Table, database: str) -> None:
        self.server = server
        self.table = table
        address = DatabaseAddress(host=server.host, port=server.port, user=server.user, password="")
        self._plain = server.connect(database=database, charset="utf8mb4")
        with self._plain.cursor() as cursor:
            cursor.execute("SET sql_mode='', time_zone='+00:00'")
        self._stream = SourceStream(address)
        self._stream.run(f"USE {database}".encode())

    def close(self) -> None:
        self._plain.close()
        self._stream.close()

    def answers_wrongly(self, text: str) -> bool:
        """MySQL 5.6 has ``NULL <=> 'a'`` as NULL, and BETWEEN as false, where it must not."""
        return isinstance(self.server, MySQL56Server) and ("<=>" in text or "BETWEEN" in text)

    def check(self, text: str) -> tuple[Checked, list[FilterColumn]]:
        columns: dict[str, FilterColumn] = {}

        def find(name: str) -> FilterColumn | None:
            column = self.table.column(name)
            return filter_column(column) if column else None

        found = ExpressionCheck(ExpressionText(text), find, known_collation, columns).condition()
        return found, list(columns.values())

    def ours(self, checked: Checked, columns: list[FilterColumn]) -> dict[int, object]:
        """By id, the truth of an expression, or the words of an error."""
        rows = self._rows(columns)
        found: dict[int, object] = {}
        run = evaluator(checked.call)
        for key, row in rows.items():
            try:
                value = run(row)
                found[key] = None if value is None else bool(value)
            except EvaluationError:
                found[key] = "error"
        return found

    def theirs(self, text: str) -> dict[int, object]:
        """By id, the truth of an expression to the server, or that it is an error."""
        try:
            return self._answers(text, "")
        except pymysql.err.MySQLError as error:
            _check_out_of_range(text, error)
        found: dict[int, object] = {}
        for key in range(ROWS):
            try:
                found |= self._answers(text, f" WHERE id = {key}")
            except pymysql.err.MySQLError as error:
                _check_out_of_range(text, error)
                found[key] = "error"
        return found

    def _answers(self, text: str, where: str) -> dict[int, object]:
        with self._plain.cursor() as cursor:
            cursor.execute(f"SELECT id, ({text}) IS TRUE, ({text}) IS NULL FROM x{where}")
            return {k: None if null else bool(true) for k, true, null in cursor.fetchall()}

    def copied(self, sql: str) -> set[int]:
        """The rows that a copy's condition takes."""
        answer = self._stream.rows(f"SELECT id FROM x WHERE ({sql} IS NOT TRUE)".encode())
        return {int(row[0]) for row in answer}

    def _rows(self, columns: list[FilterColumn]) -> dict[int, Row]:
        selected = ["id"]
        readers = []
        for column in columns:
            selected.append(f"{column.sql}*1e0" if column.name == "f" else column.sql)
            known = self.table.column(column.name)
            assert known is not None
            readers.append(field_reader(column, known.base_type))
        found: dict[int, Row] = {}
        for block, _ in self._stream.blocks(f"SELECT {','.join(selected)} FROM x".encode()):
            for line in bytes(block).split(b"\n")[:-1]:
                key, *fields = line.split(b"\t")
                values: list[Value] = [
                    None if field == NULL_FIELD else read(field)
                    for read, field in zip(readers, fields, strict=True)
                ]
                found[int(key)] = values
        return found


def _check_out_of_range(text: str, error: Exception) -> None:
    assert error.args[0] == OUT_OF_RANGE, f"{text}: {error}"


@pytest.fixture(
    params=[
        "mariadb_source",
        "mysql_source",
        pytest.param("mariadb11_source", marks=pytest.mark.slow),
        pytest.param("mysql56_source", marks=pytest.mark.slow),
    ]
)
async def bench(request: pytest.FixtureRequest, database_name: str) -> AsyncIterator[Bench]:
    server: DatabaseServer = request.getfixturevalue(request.param)
    random = Random(20)
    listed = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS.items())
    server.execute(
        f"CREATE DATABASE {database_name}",
        f"CREATE TABLE {database_name}.x (id INT PRIMARY KEY, {listed})",
    )
    rows = [random_row(random) for _ in range(ROWS)]
    with server.connect(database=database_name, charset="utf8mb4") as connection:
        with connection.cursor() as cursor:
            cursor.execute("SET sql_mode=''")
            names = ", ".join(f"`{name}`" for name in COLUMNS)
            marks = ", ".join(["%s"] * len(COLUMNS))
            cursor.executemany(
                f"INSERT INTO x (id, {names}) VALUES (%s, {marks})",
                [(n, *(row[name] for name in COLUMNS)) for n, row in enumerate(rows)],
            )
        connection.commit()
    with closing(
        Connection(
            DatabaseAddress(host=server.host, port=server.port, user=server.user, password="")
        )
    ) as upstream:
        table = await read_table(upstream, TableName(database_name, "x"))
    assert table is not None
    found = Bench(server, table, database_name)
    yield found
    found.close()


def test_random_expressions_have_the_truth_that_the_server_gives_them(bench: Bench) -> None:
    random = Random(7)
    refused: Counter[str] = Counter()
    seen: Counter[object] = Counter()
    wrong: list[tuple[str, object]] = []
    for _ in range(EXPRESSIONS):
        text = random_expression(random)
        if bench.answers_wrongly(text):
            continue
        try:
            checked, columns = bench.check(text)
        except ExpressionError as error:
            refused[str(error).split("`: ")[-1][:60]] += 1
            continue
        ours = bench.ours(checked, columns)
        failing = {key for key, truth in ours.items() if truth == "error"}
        theirs = bench.theirs(text)
        seen.update(ours.values())
        if ours != theirs:
            differing = {k: (ours[k], theirs[k]) for k in ours if ours[k] != theirs[k]}
            wrong.append((text, differing))
            continue
        if failing:
            continue
        copied = bench.copied(checked.sql)
        expected = {key for key, truth in ours.items() if truth is None or truth is False}
        if copied != expected:
            wrong.append((f"{text} as {checked.sql}", copied ^ expected))
    assert not wrong, "\n".join(map(str, wrong[:8]))
    assert sum(refused.values()) < EXPRESSIONS * 0.6, refused
    assert min(seen[True], seen[False], seen[None]) > ROWS * 10


def test_a_copy_takes_the_rows_that_the_binlog_does_where_servers_differ(bench: Bench) -> None:
    for text in ("d % 0.01 = 0", "d % 0.01 < 0", "0 <> e % 0.000000001"):
        checked, columns = bench.check(text)
        ours = bench.ours(checked, columns)
        assert bench.copied(checked.sql) == {key for key, truth in ours.items() if not truth}, text
