"""Batches of row events as a real server logs them, applied through Spark to a real target."""

from __future__ import annotations

import asyncio
import os
import pickle
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from replicator.binlog.events.event_header import ROW_EVENTS, EventType
from replicator.binlog.events.table_map import TableMap, parse_table_map
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.fence import Fence
from replicator.downstream.meta.lease import LEASE_TABLE
from replicator.downstream.rows.load_data import probe_load_data
from replicator.downstream.rows.watermark_table import WATERMARK_TABLE
from replicator.downstream.rows.write_session import Session
from replicator.failpoints import Failpoint
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.names import Member, TableName
from replicator.pipeline.apply.apply import apply_batch
from replicator.pipeline.apply.batch import ApplySettings, Batch, BatchResult
from replicator.pipeline.plans.plan import TablePlan
from replicator.pipeline.plans.planning import plan_table
from replicator.sandbox.server import DatabaseServer
from replicator.schema.structure.inspection import read_table, read_target
from replicator.schema.structure.structure import Table
from tests.support.streams.row_columns import batch_of, plan_list, planned_events

BUCKETS = 4
TOKEN = 7
TARGETS = {"t": 7, "u": 8, "v": 9}
WRITING_STEPS = (
    Failpoint.ROWS_WRITTEN,
    Failpoint.WATERMARKS_WRITTEN,
    Failpoint.BUCKET_COMMITTED,
)
"""The steps of the transaction of a target's buckets."""
ReadTable = Callable[[Connection, TableName], Awaitable[Table | None]]


def address_of(server: DatabaseServer) -> DatabaseAddress:
    return DatabaseAddress(server.host, server.port, server.user, server.password)


def structure(
    server: DatabaseServer, schema: str, table: str, read: ReadTable = read_table
) -> Table:
    async def found_there() -> Table | None:
        with closing(Connection(address_of(server))) as connection:
            return await read(connection, TableName(schema, table))

    found = asyncio.run(found_there())
    assert found is not None
    return found


def ways_to_write(server: DatabaseServer, schema: str) -> tuple[bool, bool]:
    """Whether a task loads rows, and whether it writes them as parameters, as its probe finds."""
    with closing(Session(address_of(server))) as session:
        return probe_load_data(session, schema), session.takes_typed_rows


class Merge:
    """Shards on one server (schemas a, b, … are its sources), targets on another: ``t``, if none is
    named, or others of TARGETS."""

    def __init__(
        self, spark: SparkContext, source: DatabaseServer, target: DatabaseServer, name: str
    ) -> None:
        self.spark = spark
        self.source = source
        self.target = target
        self.name = name
        self.row_events: list[int] = []
        """The keys of the places of the row events that were recorded last."""
        target.execute(f"CREATE DATABASE {name}", f"CREATE DATABASE {name}_meta")
        load_data, typed = ways_to_write(target, f"{name}_meta")
        self.settings = ApplySettings(
            address_of(target),
            WATERMARK_TABLE.qualified(f"{name}_meta", "task"),
            Fence(LEASE_TABLE.qualified(f"{name}_meta", "task"), TOKEN),
            load_data=load_data,
            typed=typed,
            patience=20,
        )
        target.execute(
            WATERMARK_TABLE.create_sql(f"{name}_meta", "task"),
            LEASE_TABLE.create_sql(f"{name}_meta", "task"),
            f"INSERT INTO {self.settings.fence.lease_table} VALUES"
            f" (1, {TOKEN}, 0, 'here', 1, '', '', NOW(), NOW())",
            *(
                f"INSERT INTO {self.settings.watermark_table} VALUES"
                f" ('{name}_{shard}', '{name}', '{target}', {bucket}, 0, 0, 0, {TOKEN}, '', '')"
                for shard in "abc"
                for target in TARGETS
                for bucket in range(BUCKETS)
            ),
        )

    def create(
        self, columns: str, shards: str = "ab", target: str | None = None, table: str = "t"
    ) -> None:
        for shard in shards:
            schema = f"{self.name}_{shard}"
            self.source.execute(
                f"CREATE DATABASE IF NOT EXISTS {schema}",
                f"CREATE TABLE {schema}.{table} ({columns})",
            )
        self.target.execute(f"CREATE TABLE {self.name}.{table} ({target or columns})")

    def record(self, *statements: str) -> Batch:
        """Run statements on the source, ``a.t`` being shard a's table; the rows they log."""
        file, start = self.source.execute("SHOW MASTER STATUS")[0][:2]
        for shard in "abc":
            statements = tuple(
                re.sub(rf" {shard}\.([tuv])\b", rf" {self.name}_{shard}.\1", s) for s in statements
            )
        mode = "SET sql_mode='ALLOW_INVALID_DATES'"
        self.source.execute(mode, *statements, database=f"{self.name}_a")
        data = Path(self.source.folder, "data", file).read_bytes()
        return self._batch(file, start, data)

    def _batch(self, file: str, at: int, data: bytes) -> Batch:
        plans: dict[TableMap, tuple[int, TablePlan]] = {}
        plan, places, events = [], [], []
        self.row_events = []
        maps: dict[bytes, TableMap] = {}
        transaction = ordinal = 0
        while at < len(data):
            size = int.from_bytes(data[at + 9 : at + 13], "little")
            kind, event = data[at + 4], data[at : at + size - 4]
            if kind == EventType.MARIADB_GTID:
                transaction, ordinal = BinlogPosition(file, at).key, 0
            elif kind == EventType.TABLE_MAP:
                maps[event[19:25]] = parse_table_map(event[19:])
            elif kind in ROW_EVENTS:
                ordinal += 1
                table_map = maps[event[19:25]]
                if table_map not in plans:
                    plans[table_map] = (len(plans), self.plan(table_map))
                plan.append(plans[table_map][0])
                places.append((transaction, ordinal))
                self.row_events.append(BinlogPosition(file, at).key)
                events.append(event)
            at += size
        transactions, ordinals = zip(*places, strict=True) if places else ((), ())
        every = planned_events(plan, transactions, ordinals, events)
        return batch_of(plan_list(plan for _, plan in plans.values()), every)

    def plan(self, table_map: TableMap) -> TablePlan:
        return plan_table(
            Member(table_map.schema, TableName(table_map.schema, table_map.table)),
            structure(self.source, table_map.schema, table_map.table),
            table_map,
            structure(self.target, self.name, table_map.table, read=read_target),
            TARGETS[table_map.table],
            BUCKETS,
        )

    def apply(self, batch: Batch, **settings: Any) -> BatchResult:
        return apply_batch(self.spark, batch, replace(self.settings, **settings))

    def done(self, *statements: str, **settings: Any) -> BatchResult:
        result = self.apply(self.record(*statements), **settings)
        assert result.failures == ()
        return result

    def shards(self, shards: str = "ab") -> list[tuple[Any, ...]]:
        return sorted(
            (
                row
                for shard in shards
                for row in self.source.execute(f"SELECT * FROM {self.name}_{shard}.t")
            ),
            key=repr,
        )

    def rows(self, table: str = "t") -> list[tuple[Any, ...]]:
        return sorted(self.target.execute(f"SELECT * FROM {self.name}.{table}"), key=repr)


def killed_at(point: Failpoint, batch: Batch, settings: ApplySettings, folder: Path) -> None:
    """Apply a batch in a driver that is killed when an executor reaches a step."""
    work = folder / "work"
    work.write_bytes(pickle.dumps((batch, settings)))
    program = (
        "import pickle, sys\n"
        "from replicator.pipeline.apply.apply import apply_batch\n"
        "from replicator.pipeline.session import spark_context\n"
        "batch, settings = pickle.load(open(sys.argv[1], 'rb'))\n"
        "apply_batch(spark_context('local[1]', {}, 'crash'), batch, settings)\n"
    )
    root = Path(__file__).parents[3]
    process = subprocess.run(
        [sys.executable, "-c", program, str(work)],
        env={**os.environ, "REPLICATOR_CRASH_AT": str(point), "PYTHONPATH": str(root)},
        capture_output=True,
        check=False,
        timeout=120,
    )
    assert process.returncode == -signal.SIGKILL, process.stderr.decode()
