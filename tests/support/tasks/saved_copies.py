"""What a task saves when it has copied its shards, without a run."""

from __future__ import annotations

from contextlib import closing

import config
from actors.setup.task_setup import address_of
from actors.task.startup.check_scope import task_to_check
from replicator.checks.schema.shard_roster import read_rosters
from replicator.downstream.meta.checkpoint import CHECKPOINT_TABLE, MEMBER_TABLE
from replicator.downstream.meta.chunk_records import CHUNK_TABLE
from replicator.downstream.meta.chunks import COPY_TABLE
from replicator.downstream.meta.held_shards import HELD_TABLE
from replicator.downstream.meta.row_owners import ROW_OWNER_TABLE
from replicator.mysql.connection.asyncio_connection import Connection

_READ = (
    *(CHECKPOINT_TABLE, HELD_TABLE, MEMBER_TABLE),
    *(COPY_TABLE, CHUNK_TABLE, ROW_OWNER_TABLE),
)
"""What a comparison reads."""


async def save_as_copied(task: config.Task) -> None:
    """Save the shards that there are now as those of a finished copy into empty targets.

    A comparison knows then that no other shard can own a row of a target.
    """
    rosters = await read_rosters(await task_to_check(task), {}, complete=False, behind={})

    def table(suffix: str) -> str:
        return f"`{task.meta_schema}`.`{task.name}_{suffix}`"

    with closing(Connection(address_of(task.target_database))) as connection:
        await connection.execute(f"CREATE DATABASE IF NOT EXISTS `{task.meta_schema}`")
        for one in _READ:
            await connection.execute(one.create_sql(task.meta_schema, task.name))
        for instance in task.mysql_instances:
            await connection.fetch(
                f"REPLACE INTO {table(COPY_TABLE.suffix)} VALUES (%s, 1, '', 0)",
                (instance.source_id,),
            )
        for target, roster in rosters.items():
            for shard in roster.shards:
                place = (*target, shard.member.source, *shard.member.name)
                columns = "target_schema, target_table, source, schema_name, table_name"
                await connection.fetch(
                    f"REPLACE INTO {table(MEMBER_TABLE.suffix)} ({columns}, version, since,"
                    " structure, provenance, doubt) VALUES (%s, %s, %s, %s, %s, 0, 0, '', '', '')",
                    place,
                )
                await connection.fetch(
                    f"REPLACE INTO {table(ROW_OWNER_TABLE.suffix)} ({columns}, ended, marks)"
                    " VALUES (%s, %s, %s, %s, %s, 0, '')",
                    place,
                )
