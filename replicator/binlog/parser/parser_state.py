"""What is known of a binlog up to the event that was read last: its groups, files and tables.

A *group* is what the source commits at once: a transaction or a single statement. Its boundaries
are the only positions from which a binlog can be read again. How the servers mark groups (MySQL
internals manual, "Binlog Event"; MariaDB KB, "GTID_EVENT"):

* MySQL: GTID, GTID_TAGGED or ANONYMOUS_GTID (from 5.6 with GTIDs, from 5.7 always), then a
  statement, or QUERY ``BEGIN`` … XID or QUERY ``COMMIT``.
* MariaDB: GTID; with its *standalone* flag one statement follows, otherwise the flag stands for
  ``BEGIN``, and XID or QUERY ``COMMIT`` ends the group.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum, auto
from typing import NoReturn

from replicator.binlog.connection import unreadable_events as refusals
from replicator.binlog.errors import DAMAGED, DamagedStreamError, UnsupportedEventError
from replicator.binlog.events.event_header import TIMESTAMP, describe
from replicator.binlog.events.transaction_payload import Payload
from replicator.binlog.parser.file_state import FileState
from replicator.binlog.parser.prepared_transactions import PreparedPlaces, PreparedTransactions
from replicator.binlog.positions.gtid import MariaDBGtid, MySQLGtid
from replicator.binlog.positions.position import SourcePosition
from replicator.binlog.segments.segment_builder import SegmentBuilder
from replicator.binlog.segments.table_routes import TableRoutes
from replicator.watermark import Place

_EVERY_ROW = 1 << 62


class XaGroup(Enum):
    """What a group is to an XA transaction: nothing, the one that prepares it, or that of the
    outcome, where its events are given back."""

    NONE = auto()
    PREPARED = auto()
    GIVEN_BACK = auto()


class ReadingState:
    """The files, the open table maps, the segment that is being filled, and the newest group.

    Of the group: ``open``: its end was not read yet; ``begun``: what ends it is a commit, not its
    statement; ``without_effect``: its statement does nothing by itself; ``gtid``: until it ends;
    ``transaction``: the key of its beginning; ``ordinal``: of its newest row event; ``skip``: up to
    which ordinal row events were handed on already; ``routed``: how many of them go anywhere.
    ``located``: whether the position is known; ``resume``: rows up to there are dropped.
    ``payloads``: those whose events come before the next packet, from the last one on.
    ``prepared``: the XA transactions that are, at the last boundary; ``xa``: what the group is to
    one of them. ``unended``: rows of a statement came, and not the last ones.
    """

    __slots__ = (
        "begun",
        "files",
        "gtid",
        "located",
        "open",
        "ordinal",
        "payloads",
        "prepared",
        "resume",
        "routed",
        "segment",
        "skip",
        "tables",
        "transaction",
        "unended",
        "without_effect",
        "xa",
    )

    def __init__(
        self,
        files: FileState,
        tables: TableRoutes,
        segment: SegmentBuilder,
        *,
        resume_after: Place | None,
        prepared: PreparedTransactions | PreparedPlaces,
    ) -> None:
        self.files = files
        self.tables = tables
        self.segment = segment
        self.payloads: list[Payload] = []
        self.prepared = prepared
        self.located = not files.by_gtid
        self.resume = resume_after
        self.open = False
        self.begun = False
        self.without_effect = False
        self.unended = False
        self.xa = XaGroup.NONE
        self.gtid: MariaDBGtid | MySQLGtid | None = None
        self.transaction = 0
        self.ordinal = 0
        self.skip = 0
        self.routed = 0

    @property
    def boundary(self) -> SourcePosition:
        """The last transaction boundary, with all that is to be known to go on from there."""
        boundary, prepared = self.files.boundary, self.prepared.places
        return replace(boundary, prepared=prepared) if prepared else boundary

    def begin_group(self, event: bytes) -> None:
        """A group begins with this event. Raises DamagedStreamError where one is open."""
        if self.open:
            raise self.damaged(event, "stands inside of a group, whose end is missing")
        self.located = True
        self.open = True
        self.begun = False
        self.without_effect = False
        self.transaction = self.files.position.begin_group(len(event))
        self.files.begins_group(self.files.position.boundary.offset, event)
        self.xa = XaGroup.NONE
        self.end_statement()
        self.ordinal = 0
        self.skip = 0
        self.routed = 0
        resume = self.resume
        if resume is not None:
            if self.transaction > resume.transaction:
                self.resume = None
            else:
                same = self.transaction == resume.transaction
                self.skip = resume.ordinal if same else _EVERY_ROW

    def end_group(self, event: bytes) -> bool:
        """The group ends with this event; whether the segment should, too.

        Raises DamagedStreamError where rows of its last statement are missing.
        """
        if not self.open:
            refuse(refusals.NOT_A_BOUNDARY)
        if self.unended:
            raise self.damaged(event, "ends a group whose last rows are missing")
        self.xa = XaGroup.NONE
        self.files.executed(self.gtid)
        self.gtid = None
        self.open = False
        self.segment.timestamp = TIMESTAMP.unpack_from(event)[0]
        self.pass_boundary()
        return self.segment.is_full()

    def end_transaction(self, event: bytes) -> bool:
        """As `end_group`, by a commit or rollback, which only ends what is `begun`.

        Raises DamagedStreamError where the group is to end otherwise.
        """
        if self.open and not self.begun:
            raise self.damaged(event, "ends a transaction that has not begun")
        if self.xa is not XaGroup.NONE:
            raise self.damaged(event, "ends an XA transaction, which other events end")
        return self.end_group(event)

    def end_statement(self) -> None:
        """The rows that come next are those of another statement."""
        self.tables.statement += 1
        self.unended = False

    def pass_boundary(self) -> None:
        """Everything up to the end of the newest event is complete."""
        self.files.position.pass_boundary()
        self.segment.moved = True

    @property
    def needs_handlers(self) -> bool:
        """Whether the next events are checked, or kept, for more than the compiled loop knows."""
        files = self.files
        return self.xa is XaGroup.PREPARED or files.in_doubt or not files.described

    def damaged(self, event: bytes, what: str) -> DamagedStreamError:
        """The error of an event that can't stand where it does; ``what`` it does there."""
        return DamagedStreamError(f"The {describe(event[4])} event {what}. {DAMAGED}.")

    def discard_unfinished(self) -> None:
        """A server that crashed may leave the beginning of a transaction at a file's end."""
        if not self.open:
            return
        self.open = False
        self.xa = XaGroup.NONE
        self.gtid = None
        self.prepared.abandon()
        if self.segment.discard(self.transaction) != self.routed:
            refuse(refusals.UNFINISHED)


def refuse(reason: str) -> NoReturn:
    """Raise UnsupportedEventError for a reason of
    `replicator.binlog.connection.unreadable_events`.
    """
    raise UnsupportedEventError(f"{reason[0].upper()}{reason[1:]}.")
