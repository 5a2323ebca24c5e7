"""The faults of statements that can't be carried over to the targets."""

from __future__ import annotations

from actors.faults import COPY_ANEW, DdlEvent, FatalError, Parts, start_behind
from actors.reading.statement_filter import ForbiddenStatementError
from replicator.binlog.segments.segment import Segment, Statement
from replicator.schema.effects.ddl_effects import DdlError
from replicator.schema.effects.overridden_effects import OverrideAction


def forbidden(
    source: str, statement: Statement, error: ForbiddenStatementError, scope: Parts
) -> FatalError:
    """The fault of a statement that a filter of the task file forbids."""
    return FatalError(
        "ddl.forbidden",
        f"{error}: {statement.sql[:500]}",
        where=f"source {source}, at {statement.position}",
        scope=scope,
        remedies=(
            "to let it pass: change the filter in the task file, then `replicator stop`,"
            " `replicator run`",
        ),
        about=DdlEvent(
            source, statement.position, (OverrideAction.SKIP.value, OverrideAction.REPLACE.value)
        ),
    )


def unsupported(
    source: str, segment: Segment, statement: Statement, error: DdlError, scope: Parts
) -> FatalError:
    """The fault of a statement that ends a segment and can't be replicated."""
    file, offset = segment.end.binlog.file, segment.end.binlog.offset
    if segment.complete:
        where = f"at {statement.position}, before {segment.end}"
        start = f"`meta: {{binlog-name: {file}, binlog-pos: {offset}}}` of source {source}"
    else:
        # Inside a transaction: its end is not known yet.
        where = f"at {statement.position}, in the transaction that begins at {segment.end}"
        start = (
            f"`meta:` of source {source} (binlog-name, binlog-pos) at the end of its transaction"
            f" (the End_log_pos of its Xid in: SHOW BINLOG EVENTS IN '{file}' FROM {offset} LIMIT"
            " 100)"
        )
    return FatalError(
        "ddl.not-supported",
        f"{error}: {statement.sql[:500]}",
        where=f"source {source}, {where}",
        scope=scope,
        remedies=(
            "make the statement's change by hand on the target, and start after the statement:"
            f" {start_behind(start)}",
            COPY_ANEW,
        ),
        about=DdlEvent(
            source, statement.position, (OverrideAction.SKIP.value, OverrideAction.REPLACE.value)
        ),
    )
