"""The shards that a task no longer follows while the target keeps their rows, in a meta table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pymysql.err import MySQLError

from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta_table import MetaTable
from replicator.mysql.connection.asyncio_connection import Connection, Transaction
from replicator.mysql.errors import NO_SUCH_TABLE, error_code
from replicator.mysql.names import Member, TableName

RETIRED_TABLE = MetaTable(
    "retired",
    "source VARCHAR(64) NOT NULL, schema_name VARCHAR(64) NOT NULL,"
    " table_name VARCHAR(64) NOT NULL, target_schema VARCHAR(64) NOT NULL,"
    " target_table VARCHAR(64) NOT NULL, place BIGINT NOT NULL, retired_at BIGINT NOT NULL,"
    " PRIMARY KEY (source, schema_name, table_name)",
)

EVERY_SHARD = TableName("", "")
"""The saved name that stands for all shards of a retired source, including later ones."""


@dataclass(frozen=True, slots=True)
class Retirement:
    """A retired shard, or a retired source (`EVERY_SHARD`).

    Attributes:
        target: the target that keeps the rows.
        place: the key of a binlog position; rows of earlier transactions are on the target.
        at: the time, in seconds since 1970.
    """

    member: Member
    target: TableName
    place: int
    at: int


async def read_retirements(
    connection: Connection, schema: str, task: str
) -> tuple[Retirement, ...]:
    """Return the task's retired shards. Raises DatabaseUnavailableError and the server's error."""
    try:
        rows = await connection.fetch(
            "SELECT source, schema_name, table_name, target_schema, target_table, place, retired_at"
            f" FROM {RETIRED_TABLE.qualified(schema, task)} ORDER BY 1, 2, 3"
        )
    except MySQLError as error:
        # Either the task has not run, or an earlier version created its meta tables.
        if error_code(error) in NO_SUCH_TABLE:
            return ()
        raise
    return tuple(
        Retirement(
            Member(source, TableName(own_schema, own_table)),
            TableName(target_schema, target_table),
            int(place),
            int(at),
        )
        for source, own_schema, own_table, target_schema, target_table, place, at in rows
    )


async def write_retirements(
    meta: MetaStore, transaction: Transaction, retired: Iterable[Retirement]
) -> None:
    """Save retired shards in a transaction."""
    for one in retired:
        await transaction.fetch(
            f"REPLACE INTO {meta.table(RETIRED_TABLE)} (source, schema_name, table_name,"
            " target_schema, target_table, place, retired_at) VALUES (%s, %s, %s, %s, %s, %s, %s)",
            (one.member.source, *one.member.name, *one.target, one.place, one.at),
        )
