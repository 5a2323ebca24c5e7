"""From events to segments: transactions, ordinals, routes, cuts. No I/O.

A *group* is what the source commits at once: a transaction or a single statement. Its boundaries
are the only positions from which a binlog can be read again. How the servers mark groups (MySQL
internals manual, "Binlog Event"; MariaDB KB, "GTID_EVENT"):

* MySQL: GTID or ANONYMOUS_GTID (from 5.6 with GTIDs, from 5.7 always), then a statement, or
  QUERY ``BEGIN`` … XID or QUERY ``COMMIT``.
* MariaDB: GTID; with its *standalone* flag one statement follows, otherwise the flag stands for
  ``BEGIN``, and XID or QUERY ``COMMIT`` ends the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import NoReturn
from zlib import crc32

from replicator.binlog import refusals
from replicator.binlog.errors import BinlogError, UnsupportedEventError
from replicator.binlog.events import (
    FLAG_IGNORABLE,
    FLAGS,
    HEAD,
    HEADER_SIZE,
    ROW_EVENTS,
    SERVER_ID,
    TIMESTAMP,
    EventType,
    describe,
)
from replicator.binlog.file_state import CRC_RESIDUE, FileState
from replicator.binlog.gtid import MariaDBGtid, MariaDBGtids, MySQLGtid, MySQLGtids
from replicator.binlog.headers import read_mariadb_gtid, read_mysql_gtid
from replicator.binlog.payload import as_outside, expand_payload
from replicator.binlog.position import SourcePosition
from replicator.binlog.query_event import (
    TransactionControl,
    parse_query_event,
    sql_offset,
    transaction_control,
)
from replicator.binlog.segment import Segment, Statement
from replicator.binlog.segment_builder import SegmentBuilder, SegmentLimits
from replicator.binlog.table_routes import NOT_REPLICATED, TABLE_ID, Route, TableRoutes
from replicator.watermark import Place

_EVERY_ROW = 1 << 62
_WHOLE_POST_HEADER = slice(HEADER_SIZE, HEADER_SIZE + 13)

_PARTS_OF_GROUPS = (
    EventType.INTVAR,
    EventType.RAND,
    EventType.USER_VAR,
    EventType.IGNORABLE,
    EventType.ROWS_QUERY,
    EventType.TRANSACTION_CONTEXT,
    EventType.VIEW_CHANGE,
    EventType.MARIADB_ANNOTATE_ROWS,
)
"""They carry nothing that the events which follow in their group do not."""
_BETWEEN_GROUPS = (
    EventType.STOP,
    EventType.MARIADB_BINLOG_CHECKPOINT,
    EventType.MARIADB_START_ENCRYPTION,
)


class SegmentAssembler:
    """Consumes events and fills segments. One thread only."""

    def __init__(
        self,
        start: SourcePosition | None,
        *,
        gtids: MariaDBGtids | MySQLGtids | None,
        route: Route,
        limits: SegmentLimits,
        resume_after: Place | None = None,
        checksums: bool = True,
    ) -> None:
        """``start`` is None where only the stream tells it; ``gtids`` None where unknown.

        ``checksums`` is what the source announced; from the first format description on it is
        what the file says. Row events up to ``resume_after`` are dropped.
        """
        self._files = FileState(start, gtids, checksums=checksums)
        self._position = self._files.position
        self._tables = TableRoutes(route)
        self._segment = SegmentBuilder(limits)
        self._resume = resume_after
        self._located = start is not None
        self._open = False
        self._begun = False
        self._without_effect = False
        self._expanded = False
        self._gtid: MariaDBGtid | MySQLGtid | None = None
        self._transaction = 0
        self._ordinal = 0
        self._skip = 0
        self._routed = 0
        self._events: Iterator[bytes] = iter(())
        self._handlers = self._build_handlers()

    @property
    def in_transaction(self) -> bool:
        """Whether the last event stands inside a group."""
        return self._open

    @property
    def moved(self) -> bool:
        """Whether there is anything to hand on."""
        return self._segment.moved

    def push(self, events: list[bytes]) -> None:
        """Give the next events, each with its checksum; `run` must have consumed the former."""
        self._events = iter(events)

    def run(self) -> bool:
        """Consume events until the segment is to end (True) or they are used up (False).

        Raises BinlogError or one of its kinds, which names the position; the state is of no
        use after that.
        """
        try:
            while self._consume():
                if not self._expanded:
                    return True
                self._expanded = False
        except BinlogError as error:
            raise type(error)(f"Binlog {self._position}: {error}") from error
        return False

    def rescue(self) -> Segment | None:
        """What is whole of the segment when `run` has raised: up to the last boundary.

        None where there is nothing. What was read of the transaction that the failure lies in is
        left out: how it goes on is not known.
        """
        if self._open:
            self._segment.discard(self._transaction)
            self._open = False
        segment = self.take()
        return segment if segment.rows else None

    def take(self) -> Segment:
        """The segment read since the last call."""
        return self._segment.take(self._files.boundary, self._tables, complete=not self._open)

    def _consume(self) -> bool:
        """The loop over events: the only code that runs for each of them."""
        head = HEAD.unpack_from
        handlers = self._handlers
        files = self._files
        position = files.position
        segment = self._segment
        for event in self._events:
            kind, size, end = head(event)
            segment.bytes += size
            position.before = position.offset
            position.offset += size
            if files.cut and crc32(event) != CRC_RESIDUE:
                files.check_failed(event)
            if end != position.offset:
                position.end_event(end)
            if handlers[kind](event):
                return True
        return False

    def _build_handlers(self) -> list[Callable[[bytes], bool]]:
        """A method for each event type; its result tells whether the segment is to end."""
        table: list[Callable[[bytes], bool]] = [self._on_unknown] * 256
        table[EventType.TABLE_MAP] = self._on_table_map
        table[EventType.XID] = self._on_xid
        table[EventType.QUERY] = self._on_query
        table[EventType.MARIADB_QUERY_COMPRESSED] = self._on_statement
        table[EventType.GTID] = table[EventType.ANONYMOUS_GTID] = self._on_mysql_gtid
        table[EventType.MARIADB_GTID] = self._on_mariadb_gtid
        table[EventType.FORMAT_DESCRIPTION] = self._on_format_description
        table[EventType.ROTATE] = self._on_rotate
        table[EventType.HEARTBEAT] = table[EventType.HEARTBEAT_V2] = self._on_heartbeat
        table[EventType.PREVIOUS_GTIDS] = self._on_previous_gtids
        table[EventType.MARIADB_GTID_LIST] = self._on_gtid_list
        table[EventType.TRANSACTION_PAYLOAD] = self._on_payload
        table[EventType.PARTIAL_UPDATE_ROWS] = self._on_partial_rows
        table[EventType.XA_PREPARE] = self._on_xa_prepare
        for kind in ROW_EVENTS:
            table[kind] = self._on_rows
        for kind in _BETWEEN_GROUPS:
            table[kind] = self._on_file_event
        for kind in _PARTS_OF_GROUPS:
            table[kind] = self._on_part_of_group
        return table

    # Rows ------------------------------------------------------------------------------------

    def _on_table_map(self, event: bytes) -> bool:
        self._tables.open(event, self._files.cut)
        return False

    def _on_rows(self, event: bytes) -> bool:
        self._ordinal += 1
        try:
            table = self._tables.by_id[event[TABLE_ID]]
        except KeyError:
            self._refuse(refusals.NOT_A_BOUNDARY)
        if self._ordinal <= self._skip or not self._tables.takes(table, event[4]):
            return False
        if not self._open:
            self._refuse(refusals.NOT_A_BOUNDARY)
        self._routed += 1
        whole = memoryview(event)[: self._files.cut]
        if self._segment.add(table, self._transaction, self._ordinal, whole):
            self._segment.timestamp = TIMESTAMP.unpack_from(event)[0]
            return True
        return False

    def _on_partial_rows(self, event: bytes) -> bool:
        self._ordinal += 1
        if self._tables.by_id.get(event[TABLE_ID], NOT_REPLICATED) != NOT_REPLICATED:
            self._refuse(refusals.PARTIAL_JSON)
        return False

    # Groups ----------------------------------------------------------------------------------

    def _begin_group(self, event: bytes) -> None:
        self._discard_unfinished()
        self._located = True
        self._open = True
        self._begun = False
        self._without_effect = False
        self._transaction = self._position.begin_group(len(event))
        self._files.begins_group(self._position.boundary.offset, event)
        self._ordinal = 0
        self._skip = 0
        self._routed = 0
        resume = self._resume
        if resume is not None:
            if self._transaction > resume.transaction:
                self._resume = None
            else:
                same = self._transaction == resume.transaction
                self._skip = resume.ordinal if same else _EVERY_ROW

    def _end_group(self, event: bytes) -> bool:
        if not self._open:
            self._refuse(refusals.NOT_A_BOUNDARY)
        self._files.executed(self._gtid)
        self._gtid = None
        self._open = False
        self._segment.timestamp = TIMESTAMP.unpack_from(event)[0]
        self._pass_boundary()
        return self._segment.is_full()

    def _pass_boundary(self) -> None:
        self._position.pass_boundary()
        self._segment.moved = True

    def _discard_unfinished(self) -> None:
        """A server that crashed may leave the beginning of a transaction at a file's end."""
        if not self._open:
            return
        self._open = False
        self._gtid = None
        if self._segment.discard(self._transaction) != self._routed:
            self._refuse(refusals.UNFINISHED)

    def _on_mariadb_gtid(self, event: bytes) -> bool:
        self._begin_group(event)
        server_id = SERVER_ID.unpack_from(event, 5)[0]
        group = read_mariadb_gtid(self._files.content(event), server_id)
        if group.xa:
            self._refuse(refusals.XA)
        self._begun = not group.standalone
        self._without_effect = group.without_effect
        self._gtid = group.gtid
        return False

    def _on_mysql_gtid(self, event: bytes) -> bool:
        self._begin_group(event)
        if event[4] == EventType.GTID:
            self._gtid = read_mysql_gtid(self._files.content(event))
        return False

    def _on_xid(self, event: bytes) -> bool:
        return self._end_group(event)

    def _on_query(self, event: bytes) -> bool:
        if event[HEADER_SIZE + sql_offset(event[_WHOLE_POST_HEADER]) : self._files.cut] == b"BEGIN":
            if not self._open:
                self._begin_group(event)
            self._begun = True
            return False
        return self._on_statement(event)

    def _on_statement(self, event: bytes) -> bool:
        if not self._open:
            self._begin_group(event)
        compressed = event[4] == EventType.MARIADB_QUERY_COMPRESSED
        query = parse_query_event(self._files.content(event), compressed=compressed)
        control = transaction_control(query.sql)
        if control is not None:
            return self._on_control(control, event)
        full = not self._begun and self._end_group(event)
        self._tables.forget()
        if self._without_effect or self._ordinal < self._skip:
            return full
        self._segment.timestamp = TIMESTAMP.unpack_from(event)[0]
        self._segment.moved = True
        self._segment.statement = Statement(
            schema=query.schema,
            sql=query.sql,
            transaction=self._transaction,
            timestamp=self._segment.timestamp,
            context=query.context,
            file=self._position.file,
            offset=self._position.before,
            error=query.error,
        )
        return True

    def _on_control(self, control: TransactionControl, event: bytes) -> bool:
        if control is TransactionControl.XA_OUTCOME:
            self._refuse(refusals.XA)
        rollback = control in (TransactionControl.ROLLBACK, TransactionControl.ROLLBACK_TO)
        if rollback and self._routed:
            self._refuse(refusals.ROLLBACK)
        if control in (TransactionControl.COMMIT, TransactionControl.ROLLBACK):
            return self._end_group(event)
        self._begun = True
        return False

    def _on_xa_prepare(self, event: bytes) -> bool:
        if not event[HEADER_SIZE]:
            self._refuse(refusals.XA)
        # XA COMMIT … ONE PHASE: an ordinary commit.
        return self._end_group(event)

    def _on_payload(self, event: bytes) -> bool:
        """Put the events inside before the next ones."""
        inner = expand_payload(self._files.content(event))
        checksums = self._files.cut is not None
        outside = as_outside(inner, self._position.offset, checksums=checksums)
        self._events = chain(outside, self._events)
        self._expanded = True
        return True

    # Files -----------------------------------------------------------------------------------

    def _on_part_of_group(self, _: bytes) -> bool:
        return False

    def _on_file_event(self, _: bytes) -> bool:
        # Before the first group of a start by GTID, groups may be left out: the position is behind.
        if self._located and not self._open:
            self._pass_boundary()
        return False

    def _on_format_description(self, event: bytes) -> bool:
        self._files.on_format_description(event)
        self._tables.forget_ids()
        return False

    def _on_rotate(self, event: bytes) -> bool:
        self._discard_unfinished()
        if self._files.on_rotate(event) and self._located:
            self._segment.moved = True
        return False

    def _on_heartbeat(self, event: bytes) -> bool:
        if self._open:
            self._position.stay()
            return False
        repeated = self._files.on_heartbeat(event)
        # While it leaves groups out at the start, a source reports where it is on its way; when it
        # reports the same position again, it has arrived.
        self._located = self._located or repeated
        self._segment.caught_up = self._located
        return self._located

    def _on_previous_gtids(self, event: bytes) -> bool:
        self._files.on_previous_gtids(event)
        return self._on_file_event(event)

    def _on_gtid_list(self, event: bytes) -> bool:
        self._files.on_gtid_list(event)
        return False

    def _on_unknown(self, event: bytes) -> bool:
        kind = event[4]
        ignorable = FLAGS.unpack_from(event, 17)[0] & FLAG_IGNORABLE
        if ignorable and kind not in refusals.REFUSALS:
            return False
        reason = refusals.REFUSALS.get(kind, refusals.UNKNOWN)
        error = BinlogError if kind == EventType.INCIDENT else UnsupportedEventError
        raise error(f"A {describe(kind)} event: {reason}.")

    def _refuse(self, reason: str) -> NoReturn:
        raise UnsupportedEventError(f"{reason[0].upper()}{reason[1:]}.")
