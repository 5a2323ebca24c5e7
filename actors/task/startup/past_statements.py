"""The statements in a range of a source's binlog that is read before the task follows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from actors.errors.faults import FatalError, TransientError, fault
from actors.reading.binlog_lookups import statements_between
from actors.reading.source_faults import source_fault
from actors.setup.task_setup import SourceSetup
from replicator.binlog.errors import BinlogError, StreamLostError
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.segment import Statement
from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.mysql.names import TableName
from replicator.mysql.server.identity import ServerIdentity
from replicator.schema.registry.past_changes import PastChange, past_changes

Found = TypeVar("Found")


async def changes_between(
    setup: SourceSetup,
    server: ServerIdentity,
    start: SourcePosition | GtidStart,
    end: BinlogPosition,
) -> list[PastChange]:
    """Return the possible changes of structures by statements from ``start`` to ``end``, in order.

    Raises FatalError, TransientError.
    """
    return await _between(setup, server, start, end, _changes)


async def created_between(
    setup: SourceSetup,
    server: ServerIdentity,
    start: SourcePosition | GtidStart,
    end: BinlogPosition,
) -> frozenset[TableName]:
    """Return the tables that statements from ``start`` to ``end`` create, or rename to.

    Raises FatalError, TransientError.
    """
    return frozenset(await _between(setup, server, start, end, _created))


async def _between(
    setup: SourceSetup,
    server: ServerIdentity,
    start: SourcePosition | GtidStart,
    end: BinlogPosition,
    pick: Callable[[Statement, ParsedStatement], tuple[Found, ...]],
) -> list[Found]:
    try:
        return await statements_between(setup, server, start, end, pick)
    except StreamLostError as error:
        raise TransientError(f"source {setup.source}: {error}") from error
    except BinlogError as error:
        raise _unreadable(setup, start, error) from error


def _unreadable(
    setup: SourceSetup, start: SourcePosition | GtidStart, error: BinlogError
) -> FatalError:
    """Return the fault to raise if this read fails.

    Unlike a reader's fault, it occurs before any row is applied.
    """
    refusal = source_fault(setup.source, start, error, by_gtid=setup.use_gtid)
    if refusal.event != "source.unreadable":
        return refusal
    return fault(
        "source.unreadable", "at-start", source=setup.source, error=refusal.message, place=start
    )


def _changes(statement: Statement, parsed: ParsedStatement) -> tuple[PastChange, ...]:
    return past_changes(parsed, statement.transaction)


def _created(statement: Statement, parsed: ParsedStatement) -> tuple[TableName, ...]:
    made = [*(new for _, new in parsed.renames), *parsed.split_off]
    if parsed.kind is StatementKind.CREATE_TABLE and not parsed.temporary:
        made += parsed.named(TableRole.SUBJECT)
    return tuple(TableName(table.schema, table.table) for table in made)
