"""The contents of a certificate: numbers, positions, and what was compared."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pymysql.err import MySQLError

from actors.control.waiting import Waited
from actors.setup.task_setup import address_of
from actors.switching.survey import Survey, SurveyedTarget
from config.models import Task
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.meta.decisions import DDL_TABLE
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import error_text
from replicator.mysql.names import TableName
from replicator.mysql.server.binlog_end import binlog_end
from replicator.mysql.server.identity import server_identity
from replicator.pipeline.compare.findings import TargetComparison
from replicator.switch.certificate import (
    SwitchCertificate,
    SwitchedShard,
    SwitchedSource,
    SwitchedTarget,
    TargetPosition,
)
from replicator.switch.numbering import following

ALL_ROWS = "all rows, while the sources were read-only"
CHANGED_ROWS = (
    "all rows while they were written, and by their keys every row that the task has applied since"
    " the comparison began, until the sources were read-only and everything was applied"
)


@dataclass(frozen=True, slots=True)
class SwitchedRows:
    """The comparisons of a switch.

    Attributes:
        before: the comparisons of all rows before the sources were read-only, by target.
        before_at: when the last of these ended.
        frozen_at: when the sources became read-only.
        frozen: the comparisons after that.
        numbers: the next AUTO_INCREMENT value of each target that has one.
    """

    before: Mapping[TableName, TargetComparison]
    before_at: datetime
    frozen_at: datetime
    frozen: Mapping[TableName, TargetComparison] = field(default_factory=dict)
    numbers: Mapping[TableName, int] = field(default_factory=dict)


async def executed_statements(task: Task) -> dict[TableName, int]:
    """Return how many statements have a record, by target. Raises the server's error."""
    table = DDL_TABLE.qualified(task.meta_schema, task.name)
    with closing(Connection(address_of(task.target_database))) as connection:
        rows = await connection.fetch(
            f"SELECT target_schema, target_table, COUNT(*) FROM {table} GROUP BY 1, 2"
        )
    return {TableName(schema, name): int(count) for schema, name, count in rows}


async def raise_numbers(found: Survey) -> dict[TableName, int]:
    """Make each target continue after the AUTO_INCREMENT numbers of its shards.

    Return the next value by target. Raises DatabaseUnavailableError and the server's error.
    """
    numbers = {}
    with closing(Connection(found.target)) as connection:
        for name, target in sorted(found.targets.items()):
            own = target.numbering
            if own is None:
                continue
            numbers[name] = wanted = following(own, target.numbers)
            if own.following < wanted:
                await connection.execute(f"ALTER TABLE {name.quoted} AUTO_INCREMENT = {wanted}")
    return numbers


async def target_position(address: DatabaseAddress) -> TargetPosition:
    """Return the end of the target's binlog. Raises DatabaseUnavailableError."""
    with closing(Connection(address)) as connection:
        try:
            [(version,)] = await connection.fetch("SELECT VERSION()")
            if "TiDB" in str(version):
                return TargetPosition(remark="TiDB writes no binlog that can be read as MySQL's")
            end = await binlog_end(connection)
            if end is None:
                return TargetPosition(remark="the target writes no binlog (log_bin)")
            [(form, image)] = await connection.fetch(
                "SELECT @@GLOBAL.binlog_format, @@GLOBAL.binlog_row_image"
            )
            gtid = end.gtid
            if "MariaDB" in str(version):
                [(gtid,)] = await connection.fetch("SELECT @@GLOBAL.gtid_binlog_pos")
        except MySQLError as error:
            return TargetPosition(
                remark=f"the end of its binlog can't be read: {error_text(error)}"
            )
    settings = (("binlog_format", str(form), "ROW"), ("binlog_row_image", str(image), "FULL"))
    wrong = [f"{name} is {value}, not {good}" for name, value, good in settings if value != good]
    remark = f"later changes can't be read from it: {', '.join(wrong)}" if wrong else ""
    return TargetPosition(end.file, end.offset, str(gtid or ""), remark)


async def made_certificate(
    task: Task,
    found: Survey,
    waited: Waited,
    rows: SwitchedRows,
    frozen: Mapping[str, object],
) -> SwitchCertificate:
    """Make the certificate. Raises DatabaseUnavailableError and a server's error."""
    gtids = {source.source: source.complete_gtid for source in waited.sources}
    sources = []
    for source, address in sorted(found.sources.items()):
        with closing(Connection(address)) as connection:
            server = await server_identity(connection)
        end = BinlogPosition.parse(waited.until[source])
        sources.append(
            SwitchedSource(
                source,
                server.server_id,
                server.server_uuid,
                end.file,
                end.offset,
                gtids.get(source, ""),
                frozen=source in frozen,
            )
        )
    position = await target_position(found.target)
    targets = tuple(
        _target(name, target, rows)
        for name, target in sorted(found.targets.items())
        if name in rows.before
    )
    at = datetime.now(UTC)
    return SwitchCertificate(task.name, at, rows.frozen_at, tuple(sources), position, targets)


def _target(name: TableName, target: SurveyedTarget, rows: SwitchedRows) -> SwitchedTarget:
    again = rows.frozen.get(name)
    result = again or rows.before[name]
    return SwitchedTarget(
        name.schema,
        name.table,
        tuple(
            SwitchedShard(
                member.source,
                member.name.schema,
                member.name.table,
                result.by_shard.get(f"{member.source}: {member.name}"),
            )
            for member in target.shards
        ),
        result.rows,
        "" if result.checksum is None else f"{result.checksum:x}",
        "; ".join([ALL_ROWS if again else CHANGED_ROWS, *result.remarks]),
        datetime.now(UTC) if again else rows.before_at,
        frozen=again is not None,
        auto_increment=rows.numbers.get(name),
    )
