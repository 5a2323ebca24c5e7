"""Segments, the output of a binlog reader: runs of row events in binlog order."""

from __future__ import annotations

from dataclasses import dataclass

from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.row_events import RowEvents
from replicator.mysql.session_context.statement_context import NO_CONTEXT, StatementContext


@dataclass(frozen=True, slots=True)
class RouteSlot:
    """The destination of a table's row events: the target's number and the member's number.

    ``left_out``: the types of row events that are left out.
    """

    target: int
    member: int
    left_out: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Statement:
    """A query event that neither begins nor ends a transaction.

    Attributes:
        transaction: key of the position at which the statement's event group begins; it identifies
            the statement in its binlog.
        timestamp: seconds, by the source's clock.
        context: session settings of its execution.
        file, offset: the beginning of the event itself.
        error: code of the error with which it ended, 0 for none: some are logged with an error.
        gtid: GTID of its event group, if it has one.
    """

    schema: str
    sql: str
    transaction: int
    timestamp: int
    context: StatementContext = NO_CONTEXT
    file: str = ".0"
    offset: int = 0
    error: int = 0
    gtid: str = ""

    @property
    def position(self) -> BinlogPosition:
        """The beginning of the event: its Pos in SHOW BINLOG EVENTS."""
        return BinlogPosition(self.file, self.offset)


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of one source's binlog.

    Attributes:
        rows: row events by the number of their target (`RouteSlot.target`).
        end: the last transaction boundary reached: the end of the segment if ``complete``,
            otherwise the beginning of the transaction in which the segment was cut.
        statement: the statement that ends the segment: it follows all the rows, and ``end`` is
            after it.
        timestamp: time of the newest event, in seconds by the source's clock; 0 for none.
        caught_up: whether the source has reported, by a heartbeat, that it has no more events.
    """

    rows: dict[int, RowEvents]
    end: SourcePosition
    complete: bool
    timestamp: int
    bytes: int
    statement: Statement | None = None
    caught_up: bool = False
