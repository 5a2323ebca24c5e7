"""The slow path of reading a binlog: a handler for each kind of event.

Source of the formats: MySQL internals manual, "Binlog Event"; MariaDB KB, "GTID_EVENT".
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from replicator.binlog.connection import unreadable_events as refusals
from replicator.binlog.errors import BinlogError, DamagedStreamError, UnsupportedEventError
from replicator.binlog.events.event_header import (
    FLAG_IGNORABLE,
    FLAGS,
    HEADER_SIZE,
    ROW_EVENTS,
    SERVER_ID,
    SIZE,
    TIMESTAMP,
    EventType,
    describe,
)
from replicator.binlog.events.query_event import (
    TransactionControl,
    parse_query_event,
    sql_offset,
    transaction_control,
)
from replicator.binlog.events.structural_events import (
    MariaDBGroup,
    read_mariadb_gtid,
    read_mysql_gtid,
    read_tagged_gtid,
)
from replicator.binlog.events.transaction_payload import Payload, as_inside, as_outside
from replicator.binlog.events.xa_events import (
    Xid,
    are_alike,
    read_outcome,
    read_start,
    read_xa_prepare,
)
from replicator.binlog.parser.file_state import is_artificial
from replicator.binlog.parser.parser_state import ReadingState, XaGroup, refuse
from replicator.binlog.parser.prepared_transactions import PreparedTransactions
from replicator.binlog.positions.gtid import MariaDBGtid
from replicator.binlog.segments.segment import Statement
from replicator.binlog.segments.table_routes import NOT_REPLICATED, TABLE_ID

_STATEMENTS: Final = (EventType.QUERY, EventType.MARIADB_QUERY_COMPRESSED)
_COLLECTED: Final = frozenset(
    (*ROW_EVENTS, EventType.TABLE_MAP, EventType.PARTIAL_UPDATE_ROWS, *_STATEMENTS)
)
"""The events of a group that decide its effect."""
_ENDS: Final = (
    *(TransactionControl.BEGIN, TransactionControl.COMMIT, TransactionControl.ROLLBACK),
    *(TransactionControl.XA_START, TransactionControl.XA_OUTCOME),
)


class XaHandlers:
    """Keeps the events of XA transactions, and returns them when these are committed."""

    def __init__(self, state: ReadingState) -> None:
        self._state = state
        self._named: Xid | None = None
        self._completes = False

    def begin_group(self, group: MariaDBGroup, event: bytes) -> None:
        """Begin a group, which is related to an XA transaction."""
        if group.completes and (group.prepares or not group.standalone):
            raise self._state.damaged(event, "says of an XA transaction what can't be")
        if group.prepares and group.standalone:
            raise self._state.damaged(event, "begins an XA transaction that is a statement")
        self._named, self._completes = group.xid, group.completes
        if group.prepares:
            self._begin()

    def _begin(self) -> None:
        state = self._state
        state.begun = True
        state.xa = XaGroup.PREPARED
        state.prepared.begin()

    def collect(self, event: bytes) -> bool:
        """Keep an event; return whether nothing else needs to be done with it.

        Events of other kinds have handlers.
        """
        state, kind = self._state, event[4]
        if kind not in _COLLECTED:
            return False
        if kind in _STATEMENTS:
            compressed = kind == EventType.MARIADB_QUERY_COMPRESSED
            sql = parse_query_event(state.files.content(event), compressed=compressed).sql
            control = transaction_control(sql)
            if control is TransactionControl.XA_END:
                return True
            if control in _ENDS:
                raise state.damaged(event, "stands in a group that prepares an XA transaction")
        if isinstance(state.prepared, PreparedTransactions):
            state.prepared.collect(as_inside(event, state.files.cut))
        return True

    def on_prepare(self, event: bytes) -> bool:
        """End the group, which the event prepares or commits."""
        state, prepared = self._state, self._state.prepared
        if state.xa is XaGroup.NONE:
            raise state.damaged(event, "ends a group that no XA transaction has begun")
        xid, one_phase = read_xa_prepare(state.files.content(event))
        if state.xa is XaGroup.OUTCOME:
            prepared.settled()
            return state.end_group(event)
        if self._named is not None and not are_alike(self._named, xid):
            raise state.damaged(
                event, f"ends the XA transaction {xid}, and {self._named} was begun"
            )
        if one_phase and isinstance(state.gtid, MariaDBGtid):
            raise state.damaged(
                event, f"commits the XA transaction {xid}, which was to be prepared"
            )
        if not one_phase:
            prepared.prepare(self._named or xid, state.files.position.boundary)
        elif isinstance(prepared, PreparedTransactions):
            last = as_inside(event, state.files.cut)
            state.payloads.append(prepared.in_one_phase(self._named or xid, last))
            state.xa = XaGroup.OUTCOME
            return False
        return state.end_group(event)

    def on_statement(self, control: TransactionControl, sql: str, event: bytes) -> bool:
        """Handle XA START, or an outcome, which is a group of its own."""
        state = self._state
        if state.begun:
            raise state.damaged(event, "stands inside of a transaction")
        if control is TransactionControl.XA_START:
            self._named = read_start(sql)
            self._begin()
            return False
        outcome = read_outcome(sql)
        if outcome is None:
            refuse(refusals.XA)
        if isinstance(state.gtid, MariaDBGtid) and not self._announced(outcome.xid):
            raise state.damaged(event, f"is another outcome than announced ({self._named})")
        at = state.files.position.boundary
        if outcome.committed:
            events = state.prepared.commit(outcome.xid, at, event)
            if events is not None:
                state.begun = True
                state.xa = XaGroup.OUTCOME
                state.payloads.append(events)
                return False
        else:
            state.prepared.roll_back(outcome.xid, at)
        return state.end_group(event)

    def refuse_other(self, event: bytes) -> None:
        """Refuse a statement that is no outcome although an outcome was announced."""
        state = self._state
        announced = isinstance(state.gtid, MariaDBGtid) and self._completes
        if announced and state.xa is XaGroup.NONE:
            raise state.damaged(event, f"stands where the outcome of {self._named} was announced")

    def _announced(self, xid: Xid) -> bool:
        return self._completes and self._named is not None and are_alike(xid, self._named)


_WHOLE_POST_HEADER = slice(HEADER_SIZE, HEADER_SIZE + 13)

_ROWS_FLAGS = HEADER_SIZE + 6
"""Offset of the flags of row events (MySQL internals manual, "ROWS_EVENT")."""
_STATEMENT_END = 1

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
"""Events that say nothing about the later events of their groups."""
_BETWEEN_GROUPS = (
    EventType.STOP,
    EventType.MARIADB_BINLOG_CHECKPOINT,
    EventType.MARIADB_START_ENCRYPTION,
)


_DAMAGE = (struct.error, IndexError, KeyError, OverflowError, ValueError)
"""The exceptions raised for damaged bytes."""
_DEEPEST = 2
"""Maximum nesting of payloads: an XA transaction's events, and a compressed transaction."""


class SlowPath:
    """Reads events into the state. Each method returns whether the segment should end.

    All raise BinlogError or a subclass; the state can't be used after that.
    """

    def __init__(self, state: ReadingState) -> None:
        self._state = state
        self._xa = XaHandlers(state)
        self._handlers = self._build_handlers()

    def handle(self, event: bytes) -> bool:
        """Handle an event, from its header on, with its checksum."""
        if len(event) < HEADER_SIZE:
            raise BinlogError(f"An event of {len(event)} bytes is too short to be one.")
        size = SIZE.unpack_from(event, 9)[0]
        if size != len(event):
            raise DamagedStreamError(
                f"A {describe(event[4])} event says that it has {size} bytes, and {len(event)}"
                " have arrived: something between this host and the server damages the stream."
            )
        self._state.files.advance(event)
        self._state.segment.bytes += size
        return self._take(event)

    def handle_inside(self, event: bytes) -> bool:
        """Handle an event of a payload, from its header on; it has no checksum."""
        files = self._state.files
        position = files.position
        self._state.segment.bytes += len(event)
        position.before = position.offset
        checksums = files.cut is not None
        return self._take(as_outside(event, position.offset, checksums=checksums))

    def _take(self, event: bytes) -> bool:
        if self._state.xa is XaGroup.PREPARED and self._xa.collect(event):
            return False
        try:
            return self._handlers[event[4]](event)
        except _DAMAGE as error:
            raise BinlogError(
                f"A {describe(event[4])} event of {len(event)} bytes can't be read"
                f" ({type(error).__name__}: {error}): it is damaged, or of a form that this program"
                " does not know. Check the file with mysqlbinlog on the source."
            ) from error

    def _build_handlers(self) -> list[Callable[[bytes], bool]]:
        table: list[Callable[[bytes], bool]] = [self._on_unknown] * 256
        table[EventType.TABLE_MAP] = self._on_table_map
        table[EventType.XID] = self._on_xid
        table[EventType.QUERY] = self._on_query
        table[EventType.MARIADB_QUERY_COMPRESSED] = self._on_statement
        table[EventType.GTID] = table[EventType.ANONYMOUS_GTID] = self._on_mysql_gtid
        table[EventType.GTID_TAGGED] = self._on_tagged_gtid
        table[EventType.MARIADB_GTID] = self._on_mariadb_gtid
        table[EventType.FORMAT_DESCRIPTION] = self._on_format_description
        table[EventType.ROTATE] = self._on_rotate
        table[EventType.HEARTBEAT] = table[EventType.HEARTBEAT_V2] = self._on_heartbeat
        table[EventType.PREVIOUS_GTIDS] = self._on_previous_gtids
        table[EventType.MARIADB_GTID_LIST] = self._on_gtid_list
        table[EventType.TRANSACTION_PAYLOAD] = self._on_payload
        table[EventType.PARTIAL_UPDATE_ROWS] = self._on_partial_rows
        table[EventType.XA_PREPARE] = self._xa.on_prepare
        for kind in ROW_EVENTS:
            table[kind] = self._on_rows
        for kind in _BETWEEN_GROUPS:
            table[kind] = self._on_file_event
        for kind in _PARTS_OF_GROUPS:
            table[kind] = self._on_part_of_group
        return table

    # Rows and groups -------------------------------------------------------------------------

    def _on_table_map(self, event: bytes) -> bool:
        self._in_transaction(event)
        self._state.tables.open(event, self._state.files.cut, self._state.statement)
        return False

    def _in_transaction(self, event: bytes) -> None:
        """Raise an error unless a transaction has begun: rows need one."""
        state = self._state
        if not state.open:
            refuse(refusals.NOT_A_BOUNDARY)
        if not state.begun:
            raise state.damaged(event, "stands in a group that is a statement")

    def _take_rows(self, event: bytes) -> None:
        """Check that a row event follows its table map; note if it ends its statement."""
        state = self._state
        self._in_transaction(event)
        if not state.tables.is_mapped(event[TABLE_ID], state.statement):
            raise state.damaged(event, "has no table map in its statement")
        if FLAGS.unpack_from(event, _ROWS_FLAGS)[0] & _STATEMENT_END:
            state.end_statement()
        else:
            state.unended = True

    def _on_rows(self, event: bytes) -> bool:
        state = self._state
        self._take_rows(event)
        state.ordinal += 1
        table = state.tables.by_id[event[TABLE_ID]]
        if state.ordinal <= state.skip or not state.tables.takes(table, event[4]):
            return False
        state.routed += 1
        whole = memoryview(event)[: state.files.cut]
        if state.segment.add(table, state.transaction, state.ordinal, whole):
            state.segment.timestamp = TIMESTAMP.unpack_from(event)[0]
            return True
        return False

    def _on_partial_rows(self, event: bytes) -> bool:
        state = self._state
        self._take_rows(event)
        state.ordinal += 1
        if state.tables.by_id.get(event[TABLE_ID], NOT_REPLICATED) != NOT_REPLICATED:
            refuse(refusals.PARTIAL_JSON)
        return False

    def _on_mariadb_gtid(self, event: bytes) -> bool:
        state = self._state
        state.begin_group(event)
        server_id = SERVER_ID.unpack_from(event, 5)[0]
        group = read_mariadb_gtid(state.files.content(event), server_id)
        state.begun = not group.standalone
        state.without_effect = group.without_effect
        state.gtid = group.gtid
        state.files.begins_sending(group.gtid)
        self._xa.begin_group(group, event)
        return False

    def _on_mysql_gtid(self, event: bytes) -> bool:
        state = self._state
        state.begin_group(event)
        if event[4] == EventType.GTID:
            state.gtid = read_mysql_gtid(state.files.content(event))
        state.files.begins_sending(state.gtid)
        return False

    def _on_tagged_gtid(self, event: bytes) -> bool:
        state = self._state
        state.begin_group(event)
        state.gtid = read_tagged_gtid(state.files.content(event))
        state.files.begins_sending(state.gtid)
        return False

    def _on_xid(self, event: bytes) -> bool:
        return self._state.end_transaction(event)

    def _on_query(self, event: bytes) -> bool:
        state = self._state
        sql = event[HEADER_SIZE + sql_offset(event[_WHOLE_POST_HEADER]) : state.files.cut]
        if sql == b"BEGIN":
            self._begin(event)
            return False
        if sql == b"COMMIT" and state.open:
            return state.end_transaction(event)
        return self._on_statement(event)

    def _begin(self, event: bytes) -> None:
        state = self._state
        if state.open and state.begun:
            raise state.damaged(event, "begins a transaction inside of another")
        if isinstance(state.gtid, MariaDBGtid):
            raise state.damaged(event, "begins a transaction where a statement was announced")
        if not state.open:
            state.begin_group(event)
        state.begun = True

    def _on_statement(self, event: bytes) -> bool:
        state = self._state
        if not state.open:
            state.begin_group(event)
        compressed = event[4] == EventType.MARIADB_QUERY_COMPRESSED
        query = parse_query_event(state.files.content(event), compressed=compressed)
        control = transaction_control(query.sql)
        if control in (TransactionControl.XA_START, TransactionControl.XA_OUTCOME):
            return self._xa.on_statement(control, query.sql, event)
        if control is not None:
            return self._on_control(control, event)
        self._xa.refuse_other(event)
        if query.has_no_effect_yet is not state.without_effect:
            raise state.damaged(event, "is another half of an ALTER than its GTID event says")
        gtid = "" if state.gtid is None else str(state.gtid)
        full = not state.begun and state.end_group(event)
        state.tables.forget()
        if state.without_effect or state.ordinal < state.skip:
            return full
        state.segment.timestamp = TIMESTAMP.unpack_from(event)[0]
        state.segment.moved = True
        state.segment.statement = Statement(
            schema=query.schema,
            sql=query.sql,
            transaction=state.transaction,
            timestamp=state.segment.timestamp,
            context=query.context,
            file=state.files.position.file,
            offset=state.files.position.before,
            error=query.error,
            gtid=gtid,
        )
        return True

    def _on_control(self, control: TransactionControl, event: bytes) -> bool:
        state = self._state
        rollback = control in (TransactionControl.ROLLBACK, TransactionControl.ROLLBACK_TO)
        if rollback and state.routed:
            refuse(refusals.ROLLBACK)
        if control in (TransactionControl.COMMIT, TransactionControl.ROLLBACK):
            return state.end_transaction(event)
        if control is TransactionControl.BEGIN:
            self._begin(event)
        state.begun = True
        return False

    def _on_payload(self, event: bytes) -> bool:
        if len(self._state.payloads) >= _DEEPEST:
            raise BinlogError("A compressed transaction holds compressed transactions.")
        self._state.payloads.append(Payload.of_event(self._state.files.content(event)))
        return False

    # Files -----------------------------------------------------------------------------------

    def _on_part_of_group(self, _: bytes) -> bool:
        return False

    def _on_file_event(self, event: bytes) -> bool:
        state = self._state
        if state.open:
            raise state.damaged(event, "stands inside of a group, whose end is missing")
        # After a start by GTID, groups may be left out before the first one sent. Then the known
        # position is too low.
        if state.located:
            state.pass_boundary()
        return False

    def _on_format_description(self, event: bytes) -> bool:
        state = self._state
        if state.open:
            raise state.damaged(event, "stands inside of a group, whose end is missing")
        state.files.on_format_description(event)
        state.tables.forget_ids()
        return False

    def _on_rotate(self, event: bytes) -> bool:
        state = self._state
        if state.open and not is_artificial(event):
            raise state.damaged(event, "stands inside of a group, whose end is missing")
        state.discard_unfinished()
        if state.files.on_rotate(event) and state.located:
            state.segment.moved = True
        return False

    def _on_heartbeat(self, event: bytes) -> bool:
        state = self._state
        if state.open:
            state.files.on_heartbeat_inside(event)
            return False
        repeated = state.files.on_heartbeat(event)
        # A source that leaves out groups at the start reports its progress. If it reports the same
        # position again, it has reached the start.
        state.located = state.located or repeated
        state.segment.caught_up = state.located
        return state.located

    def _on_previous_gtids(self, event: bytes) -> bool:
        self._state.files.on_previous_gtids(event)
        return self._on_file_event(event)

    def _on_gtid_list(self, event: bytes) -> bool:
        self._state.files.on_gtid_list(event)
        return False

    def _on_unknown(self, event: bytes) -> bool:
        kind = event[4]
        ignorable = FLAGS.unpack_from(event, 17)[0] & FLAG_IGNORABLE
        if ignorable and kind not in refusals.REFUSALS:
            return False
        reason = refusals.REFUSALS.get(kind, refusals.UNKNOWN)
        error = BinlogError if kind == EventType.INCIDENT else UnsupportedEventError
        raise error(f"A {describe(kind)} event: {reason}.")
