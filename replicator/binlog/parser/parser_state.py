"""The state of reading a binlog, up to the last event: its groups, files and tables.

A *group* is the unit that the source commits: a transaction or a single statement. Its boundaries
are the only positions from which a binlog can be read again. How the servers mark groups (MySQL
internals manual, "Binlog Event"; MariaDB KB, "GTID_EVENT"):

* MySQL: GTID, GTID_TAGGED or ANONYMOUS_GTID (from 5.6 with GTIDs, from 5.7 always), then a
  statement, or QUERY ``BEGIN`` … XID or QUERY ``COMMIT``.
* MariaDB: GTID; with its *standalone* flag one statement follows, otherwise the flag means
  ``BEGIN``, and XID or QUERY ``COMMIT`` ends the group.
"""

from __future__ import annotations

import struct
from ctypes import Structure
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
from replicator.kernels.compiled import Integers
from replicator.kernels.shared_numbers import shared
from replicator.watermark import Place

_EVERY_ROW = 1 << 62


class XaGroup(Enum):
    """The relation of a group to an XA transaction.

    Attributes:
        NONE: the group belongs to no XA transaction.
        PREPARED: the group prepares one.
        OUTCOME: the group ends one; the events kept since its preparation are read with it.
    """

    NONE = auto()
    PREPARED = auto()
    OUTCOME = auto()


MARIADB, MYSQL, TAGGED, WIDE = 1, 2, 3, 4
"""Kinds of GTIDs. GTIDs with a tag, or with a number beyond 63 bits (wide), are kept as objects.
The compiled loop can end a group with a tagged GTID; handlers read all events of a group with a
wide one."""

_UUID = struct.Struct("<qq")


@shared
class ReadingState(Structure):
    """The files, the open table maps, the segment that is being filled, and the newest group.

    Attributes:
        open: whether the group's end was not read yet.
        begun: whether a commit ends the group, not its statement.
        without_effect: whether the group's statement does nothing by itself.
        located: whether the position is known.
        resuming: whether rows up to a position are dropped.
        unended: whether rows of the ``statement`` were read, but not the last ones.
        transaction: key of the group's beginning.
        ordinal: ordinal of the group's newest row event.
        skip: the ordinal up to which row events were returned before.
        routed: number of the group's row events that are returned.
        statement: the number of the statement.
        pending: whether the group has a GTID that is not executed yet.
        family: kind of this GTID and of the executed ones; 0 if there are none.
        origin, server: domain and server, or the halves of the UUID.
        number: sequence or number.
        executed: whether the compiled loop found executed GTIDs of this origin. For MariaDB,
            ``executed_first`` and ``executed_last`` are the server and the sequence of the last
            one; for MySQL, they are a half-open range of numbers.
        ended_runs: number of runs of executed GTIDs of other origins.
        nameless: for MySQL, whether the last transaction has no GTID, so the set does not identify
            the boundary.
        payloads: a stack of payloads to read before the next packet; the last one is read first.
        prepared: the prepared XA transactions at the last boundary.
        xa: the group's relation to one of them.
    """

    open: bool
    begun: bool
    without_effect: bool
    located: bool
    resuming: bool
    unended: bool
    transaction: int
    ordinal: int
    skip: int
    routed: int
    statement: int
    pending: bool
    family: int
    origin: int
    server: int
    number: int
    executed: bool
    executed_first: int
    executed_last: int
    ended_runs: int
    nameless: bool

    def __init__(
        self,
        files: FileState,
        tables: TableRoutes,
        segment: SegmentBuilder,
        *,
        resume_after: Place | None,
        prepared: PreparedTransactions | PreparedPlaces,
    ) -> None:
        super().__init__(
            located=not files.by_gtid,
            resuming=resume_after is not None,
            nameless=files.nameless,
        )
        self.files = files
        self.tables = tables
        self.segment = segment
        self.payloads: list[Payload] = []
        self.prepared = prepared
        self.xa = XaGroup.NONE
        self._resume = resume_after
        self._gtid_object: MariaDBGtid | MySQLGtid | None = None

    @property
    def gtid(self) -> MariaDBGtid | MySQLGtid | None:
        """The GTID of the group, until it ends; None if it has none."""
        if not self.pending:
            return None
        if self.family == MARIADB:
            return MariaDBGtid(self.origin, self.server, self.number)
        if self.family == MYSQL:
            return MySQLGtid(_UUID.pack(self.origin, self.server), self.number)
        return self._gtid_object

    @gtid.setter
    def gtid(self, gtid: MariaDBGtid | MySQLGtid | None) -> None:
        self.pending, self.family, self._gtid_object = gtid is not None, 0, gtid
        if isinstance(gtid, MariaDBGtid):
            self.family = MARIADB if gtid.sequence >> 63 == 0 else WIDE
            self.origin, self.server, self.number = gtid.domain, gtid.server, gtid.sequence
        elif gtid is not None and gtid.tag:
            self.family = TAGGED
        elif gtid is not None:
            self.family = MYSQL if gtid.number >> 63 == 0 else WIDE
            self.origin, self.server = _UUID.unpack(gtid.source)
            self.number = gtid.number

    def record_executed(self, runs: Integers) -> None:
        """Record the GTIDs that the compiled loop found executed; the ended ``runs`` are first."""
        ended = runs[: self.ended_runs].tolist() if self.ended_runs else []
        if self.executed and self.family != TAGGED:
            ended.append([self.origin, self.server, self.executed_first, self.executed_last])
        if self.family == TAGGED:
            # The GTID was read before the loop began, and the loop has read no other one.
            self.files.executed(self._gtid_object)
        elif self.family == MARIADB:
            for domain, _, server, sequence in ended:
                self.files.executed(MariaDBGtid(domain, server, sequence))
        else:
            for *source, first, end in ended:
                self.files.executed_run(_UUID.pack(*source), first, end)
        self.executed, self.ended_runs = False, 0
        if not self.pending:
            self.family = 0

    @property
    def boundary(self) -> SourcePosition:
        """The last transaction boundary, with everything that is needed to continue from it."""
        boundary, prepared = self.files.boundary, self.prepared.places
        if self.nameless:
            boundary = replace(boundary, gtid="")
        return replace(boundary, prepared=prepared) if prepared else boundary

    def begin_group(self, event: bytes) -> None:
        """Begin a group with this event. Raises DamagedStreamError if a group is open."""
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
        resume = self._resume
        if resume is not None:
            if self.transaction > resume.transaction:
                self._resume, self.resuming = None, False
            else:
                same = self.transaction == resume.transaction
                self.skip = resume.ordinal if same else _EVERY_ROW

    def end_group(self, event: bytes) -> bool:
        """End the group with this event; return whether the segment should end.

        Raises DamagedStreamError if rows of its last statement are missing.
        """
        if not self.open:
            refuse(refusals.NOT_A_BOUNDARY)
        if self.unended:
            raise self.damaged(event, "ends a group whose last rows are missing")
        self.xa = XaGroup.NONE
        self.files.executed(self.gtid)
        self.nameless = not self.pending
        self.gtid = None
        self.open = False
        self.segment.timestamp = TIMESTAMP.unpack_from(event)[0]
        self.pass_boundary()
        return self.segment.is_full()

    def end_transaction(self, event: bytes) -> bool:
        """End the group by a commit or rollback, which are valid only if the group is `begun`.

        Raises DamagedStreamError if the group needs another end.
        """
        if self.open and not self.begun:
            raise self.damaged(event, "ends a transaction that has not begun")
        if self.xa is not XaGroup.NONE:
            raise self.damaged(event, "ends an XA transaction, which other events end")
        return self.end_group(event)

    def end_statement(self) -> None:
        """End the statement: the next rows belong to another one."""
        self.statement += 1
        self.unended = False

    def pass_boundary(self) -> None:
        """Set the boundary to the end of the newest event: everything before it is complete."""
        self.files.position.pass_boundary()
        self.segment.moved = True

    @property
    def needs_handlers(self) -> bool:
        """Whether the next events need checks or storage that the compiled loop does not have."""
        files = self.files
        doubtful = files.in_doubt or not files.described
        return doubtful or self.xa is XaGroup.PREPARED or self.family == WIDE

    def damaged(self, event: bytes, what: str) -> DamagedStreamError:
        """Return the error for an event in a wrong place; ``what`` completes the sentence."""
        return DamagedStreamError(f"The {describe(event[4])} event {what}. {DAMAGED}.")

    def discard_unfinished(self) -> None:
        """Drop the beginning of a transaction that a crashed server left at a file's end."""
        if not self.open:
            return
        self.open = False
        self.xa = XaGroup.NONE
        self.gtid = None
        self.prepared.abandon()
        if self.segment.discard(self.transaction) != self.routed:
            refuse(refusals.UNFINISHED)


def refuse(reason: str) -> NoReturn:
    """Raise UnsupportedEventError for a reason.

    The reasons are in `replicator.binlog.connection.unreadable_events`.
    """
    raise UnsupportedEventError(f"{reason[0].upper()}{reason[1:]}.")
