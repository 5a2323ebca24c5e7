"""Sharded tables at the sources, the merged ones at the target, and whether they are equal."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass

from pymysql.cursors import Cursor

from benchmarks.errors import BenchmarkError
from replicator.binlog.positions.position import BinlogPosition
from replicator.sandbox.server import DatabaseServer

SCHEMA = "shard"
TARGET_SCHEMA = "merged"


@dataclass(frozen=True, slots=True)
class Table:
    """An entity: its columns, and in how many shards it comes at each source."""

    name: str
    columns: str
    shards: int

    @property
    def merged(self) -> str:
        """The table at the target."""
        return f"{TARGET_SCHEMA}.{self.name}"


@dataclass(frozen=True, slots=True)
class Shard:
    """One table at a source. ``number`` tells the shards of one entity apart, over all sources."""

    table: Table
    server: DatabaseServer
    number: int

    @property
    def name(self) -> str:
        """Schema and table."""
        return f"{SCHEMA}.{self.table.name}_{self.number}"


@dataclass(frozen=True, slots=True)
class Estate:
    """Tables that each of the servers has shards of."""

    tables: tuple[Table, ...]
    servers: tuple[DatabaseServer, ...]

    def shards_of(self, table: Table) -> list[Shard]:
        """The shards of one entity, those of the first server first."""
        count = len(self.servers) * table.shards
        return [Shard(table, self.servers[n // table.shards], n) for n in range(count)]

    def shards(self) -> list[Shard]:
        """All shards, in turn of every table."""
        by_table = [self.shards_of(table) for table in self.tables]
        return [shard for shards in zip(*by_table, strict=True) for shard in shards]

    def create_shards(self) -> None:
        """Make the empty shards anew."""
        for server in self.servers:
            _create(server, [shard for shard in self.shards() if shard.server is server])

    def create_shards_at(self, server: DatabaseServer) -> Estate:
        """Make all shards, empty, at one server that a baseline writes to."""
        server.execute(f"DROP DATABASE IF EXISTS {SCHEMA}")
        _create(server, self.shards())
        return Estate(
            tuple(Table(t.name, t.columns, len(self.shards_of(t))) for t in self.tables), (server,)
        )

    def create_targets(self, target: DatabaseServer) -> None:
        """Make the target's schema anew, with the empty merged tables."""
        target.execute(
            f"DROP DATABASE IF EXISTS {TARGET_SCHEMA}",
            f"CREATE DATABASE {TARGET_SCHEMA}",
            *(f"CREATE TABLE {table.merged} {table.columns}" for table in self.tables),
        )

    def ends(self) -> tuple[BinlogPosition, ...]:
        """Where the sources' binlogs end now."""
        return tuple(map(end_of, self.servers))

    def compare(self, target: DatabaseServer) -> None:
        """Raise BenchmarkError unless each merged table holds what its shards hold."""
        with ExitStack() as resources:
            cursors = cursors_of((*self.servers, target), resources)
            for table in self.tables:
                shards = self.shards_of(table)
                columns = columns_of(cursors[shards[0].server.port], shards[0].name)
                held = _total(_sums(cursors[s.server.port], s.name, columns) for s in shards)
                merged = _sums(cursors[target.port], table.merged, columns)
                if merged != held:
                    raise BenchmarkError(
                        f"{table.name}: the shards hold {held}, the target {merged}"
                    )


@dataclass(frozen=True, slots=True)
class Backlog:
    """What the sources' binlogs hold from ``starts`` to ``ends``: ``rows`` changes of rows."""

    estate: Estate
    starts: tuple[BinlogPosition, ...]
    ends: tuple[BinlogPosition, ...]
    rows: int


def end_of(server: DatabaseServer) -> BinlogPosition:
    """Where the server's binlog ends now."""
    (row,) = server.execute("SHOW MASTER STATUS")
    return BinlogPosition(str(row[0]), int(row[1]))


def cursors_of(servers: tuple[DatabaseServer, ...], resources: ExitStack) -> dict[int, Cursor]:
    """A cursor at each server, by its port; open as long as ``resources`` is."""
    found = {}
    for server in servers:
        connection = resources.enter_context(server.connect())
        found[server.port] = resources.enter_context(connection.cursor())
    return found


def _create(server: DatabaseServer, shards: list[Shard]) -> None:
    server.execute(
        f"CREATE DATABASE IF NOT EXISTS {SCHEMA}",
        *(
            sql
            for shard in shards
            for sql in (
                f"DROP TABLE IF EXISTS {shard.name}",
                f"CREATE TABLE {shard.name} {shard.table.columns}",
            )
        ),
    )


def columns_of(cursor: Cursor, table: str) -> str:
    """The columns of a table, with commas."""
    return ",".join(types_of(cursor, table))


def types_of(cursor: Cursor, table: str) -> dict[str, str]:
    """The columns of a table in their order, with the first word of their types."""
    cursor.execute(
        "SELECT column_name, LOWER(data_type) FROM information_schema.columns"
        " WHERE table_schema=%s AND table_name=%s ORDER BY ordinal_position",
        table.split("."),
    )
    return {str(name): str(kind) for name, kind in cursor.fetchall()}


def _sums(cursor: Cursor, table: str, columns: str) -> tuple[int, ...]:
    """How many rows, and the sum of their checksums."""
    cursor.execute(
        f"SELECT COUNT(*), COALESCE(SUM(CRC32(CONCAT_WS('|',{columns}))),0) FROM {table}"
    )
    (row,) = cursor.fetchall()
    return tuple(map(int, row))


def _total(sums: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*sums, strict=True)))
