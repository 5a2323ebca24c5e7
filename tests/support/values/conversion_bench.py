"""Writes values of one type into a column of another one in every way that the product has.

They are read from the binlog and from a snapshot, loaded, written by statements and as parameters,
and looked up.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import anyio

from replicator.binlog.errors import BinlogError
from replicator.binlog.events.table_map import TableMap
from replicator.downstream.rows.bulk_statements import store_rows
from replicator.downstream.rows.load_data import InexactLoadError, load_rows
from replicator.downstream.rows.statements import RowRefusedError, delete_rows, insert_rows
from replicator.downstream.rows.target_columns import TargetTable
from replicator.downstream.rows.write_session import Session
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.names import Member, TableName, quote
from replicator.pipeline.copy.copy_plan import CopyChunk, chunk_query, plan_copy
from replicator.pipeline.copy.copy_reading import converted
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.pipeline.plans.parameter_plan import parameter_types
from replicator.pipeline.plans.plan import TablePlan
from replicator.pipeline.plans.planning import plan_table
from replicator.rows.decoder.block_decoder import BlockDecoder
from replicator.rows.decoder.reference_decoder import ReferenceDecoder
from replicator.sandbox.server import DatabaseServer
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import Column, Table
from tests.support.streams.binlog_file import table_events
from tests.support.streams.row_blocks import images_of
from tests.support.streams.row_columns import spans_of
from tests.support.values.conversion_pairs import Pair


def address_of(server: DatabaseServer) -> DatabaseAddress:
    return DatabaseAddress(server.host, server.port, server.user, server.password)


MEMBER = Member("a", TableName("s", "t"))

Load = Callable[[list[bytes]], None] | None
"""Writes lines together, unless they are to be written by statements."""


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

    def check(self, values: Sequence[list[str]], *settings: str) -> None:
        """Write values of each pair in every way; raises AssertionError where one has changed.

        ``settings`` are statements for the shards' session.
        """
        inserts = [
            f"INSERT INTO t{number} VALUES (1000, NULL),"
            + ",".join(f"({n}, {value})" for n, value in enumerate(some))
            for number, some in enumerate(values)
        ]
        inserts = [f"DELETE FROM t{number}" for number in range(len(self.pairs))] + inserts
        events: dict[str, list[bytes]] = {}
        maps = {}
        found = table_events(self.source, self.database, [*settings, "BEGIN", *inserts, "COMMIT"])
        for table_map, event in found:
            events.setdefault(table_map.table, []).append(event)
            maps[table_map.table] = table_map
        for number in range(len(self.pairs)):
            self.check_pair(number, maps[f"t{number}"], events[f"t{number}"])

    def check_pair(self, number: int, table_map: TableMap, events: list[bytes]) -> None:
        pair = self.pairs[number]
        plan = plan_table(MEMBER, self.shards[number], table_map, self.targets[number], number, 1)
        decoder = ReferenceDecoder(plan.rows)
        try:
            followed = [
                line for line in images_of(decoder.decode(events)).after if line is not None
            ]
            copied = self.copied(number)
        except BinlogError as error:
            # Text that the target's charset lacks is refused before anything is written.
            if pair.every:
                raise AssertionError(f"{pair}: {error}") from error
            return
        shard, target = self.shards[number], self.targets[number]
        wanted = shown(self.stream.rows, shard, target)
        ways: dict[str, Load] = {"loaded": load_rows_of(self.session, plan), "written": None}
        typed = self.parameters(plan, events, followed)
        for lines in (followed, copied):
            assert len(lines) == len(wanted)
            more = {"as parameters": typed} if typed and lines is followed else {}
            for way, load in (ways | more).items():
                self.session.run(b"BEGIN")
                refused = self.write(pair, plan, lines, load)
                there = shown(self.session.rows, target, target)
                expected = {key: value for key, value in wanted.items() if key not in refused}
                changed = {n: (v, there.get(n)) for n, v in expected.items() if there.get(n) != v}
                assert there == expected, f"{pair}, {way}: {changed}"
                if pair.every:
                    # The rows that the shard's events tell of are found again, byte by byte.
                    left = dict.fromkeys(followed, 1)
                    found = delete_rows(self.session, plan.target, plan.target_columns, left)
                    assert found == len(wanted), f"{pair}: {found} of {len(wanted)} rows found"
                self.session.run(b"ROLLBACK")

    def table_of(self, number: int) -> TargetTable:
        """A target as rows are written to it."""
        return plan_copy("a", self.shards[number], "", self.targets[number], number).target

    def copied(self, number: int) -> list[bytes]:
        """The lines of the shard's rows in a full copy."""
        copy = plan_copy("a", self.shards[number], "", self.targets[number], number)
        blocks = converted(copy, self.stream.blocks(chunk_query(CopyChunk(copy, 0, None, None))))
        return [line for block, _ in blocks for line in bytes(block).split(b"\n")[:-1]]

    def parameters(self, plan: TablePlan, events: list[bytes], lines: list[bytes]) -> Load:
        """Write lines as the rows of parameters that the same events make, if they make some."""
        types = parameter_types(plan)
        if types is None or not self.session.takes_typed_rows:
            return None
        block = BlockDecoder(plan.rows, typed=True).decode(spans_of(events))
        assert block is not None
        made = [row for row in images_of(block).after if row is not None]
        rows = dict(zip(lines, made, strict=True))

        def store(some: list[bytes]) -> None:
            given = plan.target, plan.target_columns, types, [rows[line] for line in some]
            store_rows(self.session, *given, replace=False)

        return store

    def write(self, pair: Pair, plan: TablePlan, lines: list[bytes], load: Load) -> list[int]:
        """Write lines, one by one where some may be refused; the ids of those."""
        refused = []
        for part in [lines] if pair.every else [[line] for line in lines]:
            self.session.set_savepoint()
            try:
                if load is None or not self.load(load, part):
                    insert_rows(self.session, plan.target, plan.target_columns, part, exact=True)
            except RowRefusedError as error:
                if pair.every:
                    raise AssertionError(f"{pair}: {error}") from error
                # What is there although a note told of it is rolled back, as in the product.
                self.session.back_to_savepoint()
                refused.append(first_id(part))
        return refused

    def load(self, load: Callable[[list[bytes]], None], lines: list[bytes]) -> bool:
        """Load lines; where that was not exact, they are to be written by statements."""
        try:
            load(lines)
        except InexactLoadError:
            self.session.back_to_savepoint()
            return False
        return True


def load_rows_of(session: Session, plan: TablePlan) -> Load:
    def load(lines: list[bytes]) -> None:
        load_rows(session, plan.target, plan.target_columns, lines, replace=False)

    return load


def first_id(lines: list[bytes]) -> int:
    return int(lines[0].split(b"\t")[0])


Rows = Callable[[bytes], Sequence[tuple[Any, ...]]]


def shown(rows: Rows, table: Table, target: Table) -> dict[int, object]:
    """By id what a client reads, but for what the target's type shows of its own."""
    column, its = table.columns[1], target.columns[1]
    if column.base_type in ("float", "bit"):
        expression = "CAST(v*1e0 AS CHAR)" if column.base_type == "float" else "CAST(v+0 AS CHAR)"
    elif column.base_type == its.base_type == "enum":
        # Index 0 looks like the label ''.
        expression = "CONCAT(IF(v+0=0, 'none', 'label '), CONVERT(v USING utf8mb4))"
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
        # Servers differ in the digits that they show, not in the number. MariaDB has no -0.
        return lambda value: struct.pack("<d", float(value) + 0.0)
    if base in ("decimal", "bit") or base.endswith("int"):
        return lambda value: Decimal(value.decode())
    if base in ("time", "datetime", "timestamp"):
        midnight = b" 00:00:00" if column.base_type == "date" else b""

        def moment(value: bytes) -> bytes:
            whole, _, fraction = (value + midnight).partition(b".")
            return whole + b"." + fraction.ljust(6, b"0")

        return moment
    return bytes


@contextmanager
def bench_of(
    source: DatabaseServer, target: DatabaseServer, database: str, pairs: list[Pair]
) -> Iterator[Bench]:
    source.execute(f"CREATE DATABASE {database}")
    # A target of its own name, since a server can be both.
    target_database = f"{database}_t"
    target.execute(f"CREATE DATABASE {target_database}")
    for number, pair in enumerate(pairs):
        # Outside strict mode a server takes labels that its collation takes for one.
        for server, name, kind in (
            (source, database, pair.shard),
            (target, target_database, pair.target),
        ):
            server.execute(
                "SET sql_mode=''", f"CREATE TABLE {name}.t{number} (id INT PRIMARY KEY, v {kind})"
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
        with closing(Connection(address_of(server))) as connection:
            found = [
                await read_table(connection, TableName(database, f"t{n}")) for n in range(number)
            ]
            return [table for table in found if table is not None]

    return anyio.run(read)
