"""What is done with the events of XA transactions (`replicator.binlog.prepared`)."""

from __future__ import annotations

from typing import Final

from replicator.binlog import refusals
from replicator.binlog.events import ROW_EVENTS, EventType
from replicator.binlog.payload import as_inside
from replicator.binlog.prepared import PreparedTransactions
from replicator.binlog.query_event import (
    TransactionControl,
    parse_query_event,
    transaction_control,
)
from replicator.binlog.reading_state import ReadingState, refuse
from replicator.binlog.xa import Xid, read_outcome, read_start, read_xa_prepare

_STATEMENTS: Final = (EventType.QUERY, EventType.MARIADB_QUERY_COMPRESSED)
_COLLECTED: Final = frozenset(
    (*ROW_EVENTS, EventType.TABLE_MAP, EventType.PARTIAL_UPDATE_ROWS, *_STATEMENTS)
)
"""The events of a group that decide what it does."""


class XaHandlers:
    """Keeps the events of XA transactions, and gives them back where they are committed."""

    def __init__(self, state: ReadingState) -> None:
        self._state = state
        self._named: Xid | None = None

    def begin(self, named: Xid | None = None) -> None:
        """The events of an XA transaction follow, which is ``named`` so by its first statement."""
        self._named = named
        self._state.begun = True
        self._state.prepared.begin()

    def collect(self, event: bytes) -> bool:
        """Whether an event is done with by keeping it. Those of other kinds have handlers."""
        prepared, files, kind = self._state.prepared, self._state.files, event[4]
        if not isinstance(prepared, PreparedTransactions) or kind not in _COLLECTED:
            return False
        if kind in _STATEMENTS:
            compressed = kind == EventType.MARIADB_QUERY_COMPRESSED
            sql = parse_query_event(files.content(event), compressed=compressed).sql
            if transaction_control(sql) is TransactionControl.XA_END:
                return True
        prepared.collect(as_inside(event, files.cut))
        return True

    def on_prepare(self, event: bytes) -> bool:
        """The group ends: prepared, or committed by the same."""
        state = self._state
        xid, one_phase = read_xa_prepare(state.files.content(event))
        prepared = state.prepared
        if not one_phase:
            prepared.prepare(self._named or xid, state.files.position.boundary)
        elif isinstance(prepared, PreparedTransactions) and prepared.collecting:
            state.payloads.append(prepared.in_one_phase(as_inside(event, state.files.cut)))
            return False
        else:
            # The end of what was given back.
            prepared.settled()
        return state.end_group(event)

    def on_statement(self, control: TransactionControl, sql: str, event: bytes) -> bool:
        """XA START, or an outcome, which is a group of its own."""
        state = self._state
        if control is TransactionControl.XA_START:
            self.begin(read_start(sql))
            return False
        outcome = read_outcome(sql)
        if outcome is None:
            refuse(refusals.XA)
        at = state.files.position.boundary
        if outcome.committed:
            events = state.prepared.commit(outcome.xid, at, event)
            if events is not None:
                state.begun = True
                state.payloads.append(events)
                return False
        else:
            state.prepared.roll_back(outcome.xid, at)
        return state.end_group(event)
