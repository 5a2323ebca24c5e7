"""What is done with the events of XA transactions
(`replicator.binlog.parser.prepared_transactions`).
"""

from __future__ import annotations

from typing import Final

from replicator.binlog.connection import unreadable_events as refusals
from replicator.binlog.events.event_header import ROW_EVENTS, EventType
from replicator.binlog.events.query_event import (
    TransactionControl,
    parse_query_event,
    transaction_control,
)
from replicator.binlog.events.structural_events import MariaDBGroup
from replicator.binlog.events.transaction_payload import as_inside
from replicator.binlog.events.xa_events import (
    Xid,
    are_alike,
    read_outcome,
    read_start,
    read_xa_prepare,
)
from replicator.binlog.parser.parser_state import ReadingState, XaGroup, refuse
from replicator.binlog.parser.prepared_transactions import PreparedTransactions
from replicator.binlog.positions.gtid import MariaDBGtid

_STATEMENTS: Final = (EventType.QUERY, EventType.MARIADB_QUERY_COMPRESSED)
_COLLECTED: Final = frozenset(
    (*ROW_EVENTS, EventType.TABLE_MAP, EventType.PARTIAL_UPDATE_ROWS, *_STATEMENTS)
)
"""The events of a group that decide what it does."""
_ENDS: Final = (
    *(TransactionControl.BEGIN, TransactionControl.COMMIT, TransactionControl.ROLLBACK),
    *(TransactionControl.XA_START, TransactionControl.XA_OUTCOME),
)


class XaHandlers:
    """Keeps the events of XA transactions, and gives them back where they are committed."""

    def __init__(self, state: ReadingState) -> None:
        self._state = state
        self._named: Xid | None = None
        self._completes = False

    def begin_group(self, group: MariaDBGroup, event: bytes) -> None:
        """A group begins, and says what it is to an XA transaction."""
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
        """Whether an event is done with by keeping it. Those of other kinds have handlers."""
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
        """The group ends: prepared, or committed by the same."""
        state, prepared = self._state, self._state.prepared
        if state.xa is XaGroup.NONE:
            raise state.damaged(event, "ends a group that no XA transaction has begun")
        xid, one_phase = read_xa_prepare(state.files.content(event))
        if state.xa is XaGroup.GIVEN_BACK:
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
            state.xa = XaGroup.GIVEN_BACK
            return False
        return state.end_group(event)

    def on_statement(self, control: TransactionControl, sql: str, event: bytes) -> bool:
        """XA START, or an outcome, which is a group of its own."""
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
                state.xa = XaGroup.GIVEN_BACK
                state.payloads.append(events)
                return False
        else:
            state.prepared.roll_back(outcome.xid, at)
        return state.end_group(event)

    def refuse_other(self, event: bytes) -> None:
        """Refuse a statement that is no outcome where one was announced."""
        state = self._state
        announced = isinstance(state.gtid, MariaDBGtid) and self._completes
        if announced and state.xa is XaGroup.NONE:
            raise state.damaged(event, f"stands where the outcome of {self._named} was announced")

    def _announced(self, xid: Xid) -> bool:
        return self._completes and self._named is not None and are_alike(xid, self._named)
