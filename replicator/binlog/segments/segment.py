"""What a binlog reader hands on: runs of row events in binlog order, cut at statements."""

from __future__ import annotations

from dataclasses import dataclass

from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.row_events import RowEvents
from replicator.mysql.context.statement_context import NO_CONTEXT, StatementContext


@dataclass(frozen=True, slots=True)
class RouteSlot:
    """Where the row events of one table go: the target's number and the member's number.

    ``left_out`` are the types of its row events that go nowhere.
    """

    target: int
    member: int
    left_out: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Statement:
    """A query event that is neither the beginning nor the end of a transaction.

    ``context`` is what it ran with. ``transaction`` is the key of the position at which the
    statement's event group begins: it identifies the statement in its binlog. ``file`` and
    ``offset``: where the event itself begins. ``error``: the code of the error that it ended with,
    0 for none: some are logged all the same. ``gtid``: that of its event group, if it has one.
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
        """Where the event begins: what SHOW BINLOG EVENTS has as its Pos."""
        return BinlogPosition(self.file, self.offset)


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of one source's binlog.

    ``rows`` maps the number of a target (`RouteSlot.target`) to its row events. ``end`` is the
    last transaction boundary reached: the end of the segment when ``complete``, else the beginning
    of the transaction that the segment was cut in. A ``statement`` ends its segment: it comes after
    all the rows, and ``end`` is the boundary after it. ``timestamp`` is the source's clock, in
    seconds, of the newest event (0: none). ``caught_up``: the source has said, by a heartbeat,
    that it has no more.
    """

    rows: dict[int, RowEvents]
    end: SourcePosition
    complete: bool
    timestamp: int
    bytes: int
    statement: Statement | None = None
    caught_up: bool = False
