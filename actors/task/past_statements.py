"""The statements of a stretch of a source's binlog, read before the task follows it."""

from __future__ import annotations

from actors.faults import FatalError, TransientError, of_source
from actors.reading.source_faults import source_fault
from actors.reading.statements_between import statements_between
from actors.task_setup import SourceSetup
from replicator.binlog.errors import BinlogError, StreamLostError
from replicator.binlog.gtid import GtidStart
from replicator.binlog.position import BinlogPosition, SourcePosition
from replicator.binlog.segment import Statement
from replicator.ddl.statement import Recognised
from replicator.mysql.identity import ServerIdentity
from replicator.schema.past_changes import PastChange, past_changes


async def changes_between(
    setup: SourceSetup,
    server: ServerIdentity,
    start: SourcePosition | GtidStart,
    end: BinlogPosition,
) -> list[PastChange]:
    """What statements from ``start`` to ``end`` may have changed of structures, in their order.

    Raises FatalError, TransientError.
    """
    try:
        return await statements_between(setup, server, start, end, _changes)
    except StreamLostError as error:
        raise TransientError(f"source {setup.source}: {error}") from error
    except BinlogError as error:
        raise _unreadable(setup.source, start, error) from error


def _unreadable(source: str, start: SourcePosition | GtidStart, error: BinlogError) -> FatalError:
    """The fault of the look ahead: unlike a reader's, it comes before any row was applied."""
    fault = source_fault(source, start, error)
    if fault.event != "source.unreadable":
        return fault
    return FatalError(
        "source.unreadable",
        f"{fault.message}\n  This was found while looking for schema changes behind the start:"
        " nothing behind the start is applied yet.",
        where=fault.where,
        scope=of_source(source),
        ways_out=(
            "mend the cause at the source, then `replicator resume`",
            "copy the tables anew (task-mode: all, with --remove-meta); a start behind the event"
            " alone would lose the rows before it",
        ),
    )


def _changes(statement: Statement, recognised: Recognised) -> tuple[PastChange, ...]:
    return past_changes(recognised, statement.transaction)
