"""Reads what the servers of a task have before a switch: shards, numbers, other objects."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field

from pymysql.err import MySQLError

from actors.comparing.owners import shards_of_targets
from actors.comparing.task_progress import TaskProgress
from actors.switching.shard_objects import ServerObjects, lacking_objects, read_objects
from actors.task.startup.check_scope import task_to_check
from config.models import Task
from replicator.checks.result import CheckResult
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.schema.structure.inspection import read_target
from replicator.schema.structure.structure import Table
from replicator.switch.numbering import Numbering
from replicator.switch.readiness import numbering_finding

_CASCADES = re.compile(r"ON (DELETE|UPDATE) (CASCADE|SET)", re.IGNORECASE)


@dataclass(slots=True)
class SurveyedTarget:
    """A target and its shards.

    Attributes:
        table: the target; None if it does not exist.
        shards: its shards with their structures.
        numbers: the next AUTO_INCREMENT value of each shard that has one, by its name.
        numbering: the AUTO_INCREMENT column of the target.
    """

    table: Table | None
    shards: Mapping[Member, Table]
    numbers: dict[str, int] = field(default_factory=dict)
    numbering: Numbering | None = None

    @property
    def keyed(self) -> bool:
        """Whether each changed row has a key by which it can be compared.

        This is not so if foreign keys change rows, because not every server logs such changes.
        """
        cascades = any(_CASCADES.search(table.create_sql) for table in self.shards.values())
        return self.table is not None and self.table.row_key is not None and not cascades


@dataclass(slots=True)
class Survey:
    """The targets of a task, and the addresses of its servers."""

    target: DatabaseAddress
    sources: Mapping[str, DatabaseAddress]
    targets: Mapping[TableName, SurveyedTarget]

    async def read_numbers(self) -> None:
        """Read the next AUTO_INCREMENT values of shards and targets.

        Raises DatabaseUnavailableError and the server's error.
        """
        for source, address in self.sources.items():
            members = {
                member.name: (name, str(member))
                for name, target in self.targets.items()
                for member in target.shards
                if member.source == source
            }
            for table, number in (await _numbers(address, {t.schema for t in members})).items():
                if table in members:
                    name, member = members[table]
                    self.targets[name].numbers[member] = number
        columns = await _numbering(self.target, {name.schema for name in self.targets})
        for name, target in self.targets.items():
            target.numbering = columns.get(name)

    def numbering_findings(self) -> Iterator[CheckResult]:
        """Yield whether the targets can continue the numbers of their shards."""
        for name, target in sorted(self.targets.items()):
            if found := numbering_finding(name, target.numbering, target.numbers):
                yield found

    async def object_findings(self) -> list[CheckResult]:
        """Return warnings about objects that shards have besides rows and the target lacks."""
        by_source: dict[str, ServerObjects] = {}
        for source, address in self.sources.items():
            schemas = {
                member.name.schema
                for target in self.targets.values()
                for member in target.shards
                if member.source == source
            }
            by_source[source] = await read_objects(address, schemas)
        of_target = await read_objects(self.target, {name.schema for name in self.targets})
        shards = {name: target.shards for name, target in self.targets.items()}
        tables = {name: target.table for name, target in self.targets.items()}
        return lacking_objects(by_source, of_target, shards, tables)


async def survey(task: Task) -> Survey:
    """Read the shards and structures of a task's targets.

    Raises RouteError, DatabaseUnavailableError and the server's error.
    """
    found = await task_to_check(task)
    shards = await shards_of_targets(found, TaskProgress(task))
    targets = {}
    with closing(Connection(found.target.address)) as connection:
        for name, members in shards.items():
            table = await read_target(connection, name)
            tables = {shard.member: shard.table for shard in members.roster.shards}
            if table is not None or tables:
                targets[name] = SurveyedTarget(table, tables)
    sources = {source.source_id: source.address for source in found.sources}
    made = Survey(found.target.address, sources, targets)
    await made.read_numbers()
    return made


async def _numbers(address: DatabaseAddress, schemas: Collection[str]) -> dict[TableName, int]:
    if not schemas:
        return {}
    with closing(Connection(address)) as connection:
        # MySQL 8 caches these values for a day; other servers do not know the variable.
        with suppress(MySQLError):
            await connection.execute("SET SESSION information_schema_stats_expiry = 0")
        marks = ", ".join(["%s"] * len(schemas))
        rows = await connection.fetch(
            "SELECT TABLE_SCHEMA, TABLE_NAME, AUTO_INCREMENT FROM information_schema.TABLES"
            f" WHERE AUTO_INCREMENT IS NOT NULL AND TABLE_SCHEMA IN ({marks})",
            sorted(schemas),
        )
    return {TableName(schema, table): int(number) for schema, table, number in rows}


async def _numbering(
    address: DatabaseAddress, schemas: Collection[str]
) -> dict[TableName, Numbering]:
    if not schemas:
        return {}
    numbers = await _numbers(address, schemas)
    with closing(Connection(address)) as connection:
        marks = ", ".join(["%s"] * len(schemas))
        rows = await connection.fetch(
            "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE"
            " FROM information_schema.COLUMNS"
            f" WHERE EXTRA LIKE '%%auto_increment%%' AND TABLE_SCHEMA IN ({marks})",
            sorted(schemas),
        )
    return {
        TableName(schema, table): Numbering(
            column, str(kind), numbers.get(TableName(schema, table), 1)
        )
        for schema, table, column, kind in rows
    }
