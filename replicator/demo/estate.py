"""The demo's servers: two sources with many shards, and the target that they are merged into."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from replicator.binlog.positions.position import BinlogPosition
from replicator.demo.tables import (
    ENTITIES,
    META_SCHEMA,
    SCHEMAS,
    SOURCES,
    TARGET_SCHEMA,
    sql,
)
from replicator.mysql.names import quote
from replicator.sandbox.mariadb import MariaDBServer

_SERVER_OPTIONS: dict[str, str | None] = {"innodb_buffer_pool_size": "256M"}


@dataclass(frozen=True)
class Estate:
    """The running servers: the sources by their ids, and the target."""

    sources: dict[str, MariaDBServer]
    target: MariaDBServer

    def create_tables(self) -> None:
        """Create the schemas, the empty shards and the empty target tables."""
        for server in self.sources.values():
            server.execute(*(sql("CREATE DATABASE", quote(schema)) for schema in SCHEMAS))
            server.execute(
                *(
                    sql("CREATE TABLE", table, "(", entity.definition, ")")
                    for entity in ENTITIES
                    for schema in SCHEMAS
                    for table in entity.shard_tables(schema)
                )
            )
        self.target.execute(
            sql("CREATE DATABASE", quote(TARGET_SCHEMA)),
            sql("CREATE DATABASE", quote(META_SCHEMA)),
            *(
                sql("CREATE TABLE", entity.target_table, "(", entity.definition, ")")
                for entity in ENTITIES
            ),
        )

    def binlog_ends(self) -> dict[str, BinlogPosition]:
        """Return the present end of each source's binlog."""
        ends = {}
        for source, server in self.sources.items():
            (row,) = server.execute("SHOW MASTER STATUS")
            ends[source] = BinlogPosition(str(row[0]), int(row[1]))
        return ends


@contextmanager
def running_estate() -> Iterator[Estate]:
    """Yield three servers on free loopback ports with their tables; remove them afterwards.

    Raises replicator.sandbox.keeper.SandboxError if a server program is missing or does not start.
    """
    servers = [MariaDBServer(_SERVER_OPTIONS) for _ in range(len(SOURCES) + 1)]
    with ExitStack() as stack:
        for server in servers:
            stack.callback(server.close)
        with ThreadPoolExecutor(len(servers)) as pool:
            list(pool.map(MariaDBServer.start, servers))
        *sources, target = servers
        estate = Estate(dict(zip(SOURCES, sources, strict=True)), target)
        estate.create_tables()
        yield estate
