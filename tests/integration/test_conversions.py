"""Types whose values may be converted: each value arrives as it is, or the server refuses it.

Values are written as the product does: read from the binlog and from a snapshot, loaded and written
by statements. Whatever is not on the list is refused, `test_other_types_are_refused` shows with
pairs that servers convert without a word.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from replicator.binlog.errors import BinlogError
from replicator.binlog.table_map import TableMap
from replicator.downstream.load_data import InexactLoadError, load_rows
from replicator.downstream.session import Session
from replicator.downstream.statements import RowRefusedError, delete_rows, insert_rows
from replicator.mysql.connection import Connection, DatabaseAddress
from replicator.mysql.names import Member, TableName, quote
from replicator.pipeline.copy_chunk import _converted
from replicator.pipeline.copy_plan import CopyChunk, chunk_query, plan_copy
from replicator.pipeline.plan import TablePlan
from replicator.pipeline.planning import UnfitTargetError, match_columns, plan_table
from replicator.pipeline.source_stream import SourceStream
from replicator.rows.row_lines import compile_decoder
from replicator.sandbox.server import DatabaseServer
from replicator.schema.conversions import Fit, charset_conversion, conversion
from replicator.schema.inspection import read_table
from replicator.schema.structure import Column, Table
from tests.support.binlog_file import table_events
from tests.support.conversion_pairs import PAIRS, Pair

TARGETS = ["mariadb_target", "mysql56_source", "mysql_source"]


def address_of(server: DatabaseServer) -> DatabaseAddress:
    return DatabaseAddress(server.host, server.port, server.user, server.password)


@dataclass
class Bench:
    """A shard and a target for each of some pairs of types; tables ``t0``, ``t1`` …"""

    source: DatabaseServer
    target: DatabaseServer
    database: str
    pairs: list[Pair]
    shards: list[Table]
    targets: list[Table]
    session: Session
    stream: SourceStream

    def check(self, values: Sequence[list[str]]) -> None:
        """Write values of each pair in every way; raises AssertionError where one has changed."""
        inserts = [
            f"INSERT INTO t{number} VALUES (1000, NULL),"
            + ",".join(f"({n}, {value})" for n, value in enumerate(some))
            for number, some in enumerate(values)
        ]
        inserts = [f"DELETE FROM t{number}" for number in range(len(self.pairs))] + inserts
        events: dict[str, list[bytes]] = {}
        maps = {}
        found = table_events(self.source, self.database, ["BEGIN", *inserts, "COMMIT"])
        for table_map, event in found:
            events.setdefault(table_map.table, []).append(event)
            maps[table_map.table] = table_map
        for number in range(len(self.pairs)):
            self.check_pair(number, maps[f"t{number}"], events[f"t{number}"])

    def check_pair(self, number: int, table_map: TableMap, events: list[bytes]) -> None:
        pair = self.pairs[number]
        plan = plan_table(
            Member("a", TableName("s", "t")),
            self.shards[number],
            table_map,
            self.targets[number],
            number,
            1,
        )
        decoder = compile_decoder(plan.columns, plan.written, plan.key, plan.hashed, plan.generated)
        try:
            followed = [line for line in decoder.decode(events).after if line is not None]
            copied = self.copied(number)
        except BinlogError as error:
            # Text that the target's charset lacks is refused before anything is written.
            if pair.every:
                raise AssertionError(f"{pair}: {error}") from error
            return
        shard, target = self.shards[number], self.targets[number]
        wanted = shown(self.stream.rows, shard, target)
        for lines in (followed, copied):
            assert len(lines) == len(wanted)
            for load in (True, False):
                self.session.run(b"BEGIN")
                refused = self.write(pair, plan, lines, load=load)
                there = shown(self.session.rows, target, target)
                expected = {key: value for key, value in wanted.items() if key not in refused}
                assert there == expected, f"{pair}, {'loaded' if load else 'statements'}"
                if pair.every:
                    # The rows that the shard's events tell of are found again, byte by byte.
                    left = dict.fromkeys(followed, 1)
                    found = delete_rows(self.session, plan.target, plan.target_columns, left)
                    assert found == len(wanted), f"{pair}: {found} of {len(wanted)} rows found"
                self.session.run(b"ROLLBACK")

    def copied(self, number: int) -> list[bytes]:
        """The lines of the shard's rows in a full copy."""
        copy = plan_copy("a", self.shards[number], "", self.targets[number], number)
        blocks = _converted(copy, self.stream.blocks(chunk_query(CopyChunk(copy, 0, None, None))))
        return [line for block, _ in blocks for line in bytes(block).split(b"\n")[:-1]]

    def write(self, pair: Pair, plan: TablePlan, lines: list[bytes], *, load: bool) -> list[int]:
        """Write lines, one by one where some may be refused; the ids of those."""
        refused = []
        for part in [lines] if pair.every else [[line] for line in lines]:
            self.session.run(b"SAVEPOINT one_row")
            try:
                if not (load and self.load(plan, part)):
                    insert_rows(self.session, plan.target, plan.target_columns, part)
            except RowRefusedError as error:
                if pair.every:
                    raise AssertionError(f"{pair}: {error}") from error
                # What is there although a note told of it is rolled back, as in the product.
                self.session.run(b"ROLLBACK TO SAVEPOINT one_row")
                refused.append(first_id(part))
        return refused

    def load(self, plan: TablePlan, lines: list[bytes]) -> bool:
        """Load lines; where that was not exact, they are to be written by statements."""
        try:
            load_rows(self.session, plan.target, plan.target_columns, lines, replace=False)
        except InexactLoadError:
            self.session.run(b"ROLLBACK TO SAVEPOINT one_row")
            return False
        return True


def first_id(lines: list[bytes]) -> int:
    return int(lines[0].split(b"\t")[0])


Rows = Callable[[bytes], Sequence[tuple[Any, ...]]]


def shown(rows: Rows, table: Table, target: Table) -> dict[int, object]:
    """By id what a client reads, but for what the target's type shows of its own."""
    column, its = table.columns[1], target.columns[1]
    if column.base_type in ("float", "bit"):
        expression = "CAST(v*1e0 AS CHAR)" if column.base_type == "float" else "CAST(v+0 AS CHAR)"
    elif column.charset:
        expression = "CONVERT(v USING utf8mb4)"
    elif column.base_type in ("point", "geometry") or "bin" in column.type or "blob" in column.type:
        expression = "v"
    else:
        expression = "CONVERT(v USING utf8mb4)"
    name = f"{quote(table.schema)}.{quote(table.name)}"
    normal = _normal(column, its)
    return {
        int(number): None if value is None else normal(bytes.fromhex(_text(value)))
        for number, value in rows(f"SELECT id, HEX({expression}) FROM {name}".encode())
    }


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()


def _normal(column: Column, target: Column) -> Callable[[bytes], object]:
    base = target.base_type
    if base in ("float", "double"):
        # Servers differ in the digits that they show, not in the number.
        return lambda value: struct.pack("<d", float(value))
    if base in ("decimal", "bit") or base.endswith("int"):
        return lambda value: Decimal(value.decode())
    if base in ("time", "datetime", "timestamp"):
        midnight = b" 00:00:00" if column.base_type == "date" else b""

        def moment(value: bytes) -> bytes:
            whole, _, fraction = (value + midnight).partition(b".")
            return whole + b"." + fraction.ljust(6, b"0")

        return moment
    return bytes


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> DatabaseServer:
    server: DatabaseServer = request.getfixturevalue(request.param)
    return server


@contextmanager
def bench_of(
    source: DatabaseServer, target: DatabaseServer, database: str, pairs: list[Pair]
) -> Iterator[Bench]:
    source.execute(f"CREATE DATABASE {database}")
    # A target of its own name, since a server can be both.
    target_database = f"{database}_t"
    target.execute(f"CREATE DATABASE {target_database}")
    for number, pair in enumerate(pairs):
        source.execute(f"CREATE TABLE {database}.t{number} (id INT PRIMARY KEY, v {pair.shard})")
        target.execute(
            f"CREATE TABLE {target_database}.t{number} (id INT PRIMARY KEY, v {pair.target})"
        )
    shards = tables(source, database, len(pairs))
    session, stream = Session(address_of(target)), SourceStream(address_of(source))
    try:
        yield Bench(
            source, target, database, pairs, shards,
            tables(target, target_database, len(pairs)), session, stream,
        )  # fmt: skip
    finally:
        session.close()
        stream.close()
        source.execute(f"DROP DATABASE {database}")
        target.execute(f"DROP DATABASE {target_database}")


def tables(server: DatabaseServer, database: str, number: int) -> list[Table]:
    async def read() -> list[Table]:
        connection = Connection(address_of(server))
        try:
            found = [
                await read_table(connection, TableName(database, f"t{n}")) for n in range(number)
            ]
            return [table for table in found if table is not None]
        finally:
            connection.close()

    return anyio.run(read)


def prove(bench: Bench, examples: int) -> None:
    """Any values of the pairs' types, some of each at a time."""

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.tuples(*(st.lists(p.values, min_size=8, max_size=15) for p in bench.pairs)))
    def run(values: tuple[list[str], ...]) -> None:
        bench.check(values)

    run()


@pytest.mark.slow
def test_values_arrive_or_are_refused(
    mariadb_source: DatabaseServer, target: DatabaseServer, database_name: str
) -> None:
    with bench_of(mariadb_source, target, database_name, PAIRS) as bench:
        prove(bench, examples=4)


@pytest.mark.slow
def test_values_of_mysql_arrive_or_are_refused(
    mysql56_source: DatabaseServer, target: DatabaseServer, database_name: str
) -> None:
    pairs = [pair for pair in PAIRS if not pair.own_to_mariadb]
    with bench_of(mysql56_source, target, database_name, pairs) as bench:
        prove(bench, examples=2)


UNSAFE = [
    ("DECIMAL(10,2)", "INT"),
    ("DECIMAL(10,4)", "DECIMAL(10,2)"),
    ("DECIMAL(10,2)", "DOUBLE"),
    ("DECIMAL(10,2)", "VARCHAR(20)"),
    ("DOUBLE", "INT"),
    ("DOUBLE", "FLOAT"),
    ("DOUBLE", "DECIMAL(20,5)"),
    ("DOUBLE", "DOUBLE(20,2)"),
    ("FLOAT", "FLOAT(7,3)"),
    ("FLOAT", "INT"),
    ("FLOAT", "VARCHAR(20)"),
    ("BIGINT", "DOUBLE"),
    ("INT", "FLOAT"),
    ("INT", "BIT(64)"),
    ("INT", "DATE"),
    ("INT", "YEAR"),
    ("INT", "TIME"),
    ("INT", "ENUM('1','2')"),
    ("INT(5) ZEROFILL", "VARCHAR(20)"),
    ("INT", "VARCHAR(20) CHARACTER SET utf16"),
    ("YEAR", "INT"),
    ("YEAR", "DATE"),
    ("TIME", "DATETIME"),
    ("TIME", "INT"),
    ("TIME(3)", "TIME"),
    ("DATE", "TIMESTAMP NULL"),
    ("DATETIME", "DATE"),
    ("DATETIME", "TIME"),
    ("DATETIME", "TIMESTAMP NULL"),
    ("DATETIME", "VARCHAR(30)"),
    ("DATETIME(6)", "DATETIME(3)"),
    ("TIMESTAMP NULL", "DATETIME"),
    ("VARCHAR(5)", "CHAR(5)"),
    ("VARCHAR(5)", "INT"),
    ("VARCHAR(5)", "DATE"),
    ("VARCHAR(5)", "VARBINARY(20)"),
    ("VARCHAR(5)", "ENUM('a')"),
    ("VARCHAR(5)", "VARCHAR(5) CHARACTER SET ucs2"),
    ("VARBINARY(5)", "VARCHAR(5)"),
    ("VARBINARY(5)", "BINARY(5)"),
    ("BINARY(4)", "BINARY(8)"),
    ("BINARY(4)", "INT"),
    ("BIT(8)", "INT"),
    ("BIT(8)", "VARBINARY(1)"),
    ("ENUM('a','b')", "ENUM('a')"),
    ("ENUM('A')", "ENUM('a')"),
    ("ENUM('a')", "INT"),
    ("ENUM('a','b')", "SET('a','b')"),
    ("SET('a','b')", "SET('b','a')"),
    ("SET('a','b')", "SET('a')"),
    ("SET('a','b')", "VARCHAR(9)"),
    ("GEOMETRY", "POINT"),
    ("POINT", "BLOB"),
]


def test_other_types_are_refused(
    mariadb_source: DatabaseServer, mariadb_target: DatabaseServer, database_name: str
) -> None:
    pairs = [Pair(shard, target, st.nothing()) for shard, target in UNSAFE]
    with bench_of(mariadb_source, mariadb_target, database_name, pairs) as bench:
        for pair, shard, target in zip(pairs, bench.shards, bench.targets, strict=True):
            with pytest.raises(UnfitTargetError) as refused:
                match_columns("a: s.t", shard, target)
            message = str(refused.value)
            assert "a: s.t: column v is " in message, pair
            assert f"ALTER TABLE `{target.schema}`.`{target.name}` MODIFY `v` " in message


def test_every_rule_is_proved(
    mariadb_source: DatabaseServer, mariadb_target: DatabaseServer, database_name: str
) -> None:
    with bench_of(mariadb_source, mariadb_target, database_name, PAIRS) as bench:
        for pair, shard, target in zip(PAIRS, bench.shards, bench.targets, strict=True):
            fits = {
                rule(shard.columns[1], target.columns[1]).fit
                for rule in (conversion, charset_conversion)
            }
            assert (fits == {Fit.ALL}) == pair.every, pair
            assert Fit.NONE not in fits, pair


def test_pairs_of_unlike_families_are_all_tried() -> None:
    """Each kind of conversion that the rules know is among the pairs."""
    from replicator.schema.conversions import _RULES, _family

    tried = {
        (_family(Column("v", pair.shard)), _family(Column("v", pair.target))) for pair in PAIRS
    }
    assert set(_RULES) - tried == {("json", "text")}  # of MySQL alone: test_json_becomes_text
