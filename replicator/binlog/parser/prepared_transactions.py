"""Prepared XA transactions, whose events are kept until their outcome is read.

A prepared transaction holds its locks, so nobody changes its rows or its tables before the outcome.
Its events are therefore read as part of the group of its XA COMMIT, like the events of a compressed
transaction: its rows have their positions in that group.
"""

from __future__ import annotations

import tempfile
import weakref
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO, BinaryIO, Final, cast

from replicator.binlog.connection import unreadable_events as refusals
from replicator.binlog.errors import DAMAGED, BinlogError, UnsupportedEventError
from replicator.binlog.events.event_header import HEADER_SIZE, U32, EventType
from replicator.binlog.events.transaction_payload import Payload
from replicator.binlog.events.xa_events import UnknownTransactionError, Xid, xa_prepare_body
from replicator.binlog.positions.position import BinlogPosition

IN_MEMORY: Final = 4 << 20
"""Bytes of one transaction's events kept in memory; the rest is stored in a temporary file."""

_MOST_IN_ONE_PHASE: Final = 1000
"""Number of remembered names of the last transactions that were committed in one phase."""


class KeptEvents:
    """Events of one transaction, in their order, without checksums; freed with the object."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115
        weakref.finalize(self, self._file.close)

    def add(self, event: bytes) -> None:
        """Keep one more event. Raises BinlogError if there is no room for it."""
        try:
            self._file.write(event)
        except OSError as error:
            raise BinlogError(
                "An XA transaction can't be kept until its outcome: the folder for temporary files"
                f" ({tempfile.gettempdir()}) does not take it: {error}. Make room there, or set"
                " TMPDIR to a folder that has it."
            ) from error

    def payload(self, last: bytes) -> Payload:
        """Return the events, followed by a last one."""
        self.add(last)
        self._file.seek(0)
        return Payload(cast(BinaryIO, self), None)

    def readinto(self, room: memoryview) -> int:
        """Put the next bytes into ``room``; return their number, 0 at the end."""
        return int(self._file.readinto(room))  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prepared transaction: the start of its group in the binlog, and its events."""

    at: BinlogPosition
    events: KeptEvents


class PreparedTransactions:
    """The transactions of one source that are prepared at the last boundary.

    Collects the events of a transaction while its group is read.
    """

    __slots__ = ("_in_one_phase", "_known", "_open", "_settling")

    def __init__(self, known: Iterable[tuple[Xid, Prepared]] = ()) -> None:
        self._known = dict(known)
        self._open: KeptEvents | None = None
        self._settling: Xid | None = None
        self._in_one_phase: deque[Xid] = deque(maxlen=_MOST_IN_ONE_PHASE)

    @property
    def places(self) -> tuple[BinlogPosition, ...]:
        """The starts of their groups, in order."""
        return tuple(sorted((one.at for one in self._known.values()), key=lambda at: at.key))

    def items(self) -> Iterable[tuple[Xid, Prepared]]:
        """Return the transactions with their names."""
        return self._known.items()

    def begin(self) -> None:
        """Begin the group of an XA transaction."""
        self._open = KeptEvents()

    def collect(self, event: bytes) -> None:
        """Keep an event of the group, without its checksum."""
        assert self._open is not None
        self._open.add(event)

    def prepare(self, xid: Xid, at: BinlogPosition) -> None:
        """End the group, which begins at this position: the transaction is prepared.

        Raises UnsupportedEventError if no group has begun.
        """
        if self._open is None:
            raise UnsupportedEventError(f"{refusals.XA}.")
        # A name is unique, so the outcome of an earlier transaction of this name was not logged.
        self._known[xid] = Prepared(at, self._open)
        self.abandon()

    def in_one_phase(self, xid: Xid, event: bytes) -> Payload:
        """Return all events of the group, which this event commits; call `settled` next."""
        assert self._open is not None
        self._in_one_phase.append(xid)
        return self._open.payload(event)

    def commit(self, xid: Xid, at: BinlogPosition, event: bytes) -> Payload | None:
        """Return a transaction's events as the group of its outcome; call `settled` next.

        ``at``: the position at which the group begins; ``event``: the group's statement. Raises
        UnknownTransactionError.
        """
        prepared = self._known.get(xid)
        if prepared is None:
            self._refuse_second_outcome(xid)
            raise UnknownTransactionError(xid, at)
        self._settling = xid
        return prepared.events.payload(_end_of(event, xid))

    def roll_back(self, xid: Xid, at: BinlogPosition) -> None:
        """Forget a transaction at the end of the group of its outcome, which begins ``at``."""
        if self._known.pop(xid, None) is None:
            self._refuse_second_outcome(xid)

    def _refuse_second_outcome(self, xid: Xid) -> None:
        if xid in self._in_one_phase:
            raise BinlogError(
                f"The XA transaction {xid} has an outcome, and it was committed when it was"
                f" prepared: one of both events lies. {DAMAGED}."
            )

    def settled(self) -> None:
        """Forget the transaction whose events were returned last: its group has ended."""
        if self._settling is not None:
            del self._known[self._settling]
        self._settling = None
        self.abandon()

    def abandon(self) -> None:
        """Forget the kept events of a group without an end."""
        self._open = None


class PreparedPlaces:
    """Replaces `PreparedTransactions` if no rows are needed.

    Attributes:
        found: starts of the groups of the transactions prepared before position key ``until``.
        met: whether a transaction with the ``sought`` name was prepared, even if its outcome
            followed.
    """

    __slots__ = ("_sought", "_until", "found", "met")

    places = ()

    def __init__(self, until: int | None = None, sought: Xid | None = None) -> None:
        self.found: dict[Xid, BinlogPosition] = {}
        self.met = False
        self._until = until
        self._sought = sought

    def begin(self) -> None:
        """Ignore the start of a group."""

    def abandon(self) -> None:
        """Ignore a group without an end."""

    def settled(self) -> None:
        """Ignore a transaction committed in one phase."""

    def prepare(self, xid: Xid, at: BinlogPosition) -> None:
        """Record a transaction prepared by the group that begins at this position."""
        if self._counts(xid, at):
            self.found[xid] = at

    def commit(self, xid: Xid, at: BinlogPosition, event: bytes) -> None:
        """Do the same as `roll_back`."""
        self.roll_back(xid, at)

    def roll_back(self, xid: Xid, at: BinlogPosition) -> None:
        """Forget a transaction whose outcome is the group that begins at this position."""
        if self._counts(xid, at):
            self.found.pop(xid, None)

    def _counts(self, xid: Xid, at: BinlogPosition) -> bool:
        counts = self._until is None or at.key < self._until
        self.met = self.met or (counts and xid == self._sought)
        return counts


def _end_of(event: bytes, xid: Xid) -> bytes:
    """Return the event that ends the group, with the time and the server of the outcome."""
    body = xa_prepare_body(xid, one_phase=True)
    size = U32.pack(HEADER_SIZE + len(body))
    return event[:4] + bytes([EventType.XA_PREPARE]) + event[5:9] + size + event[13:19] + body
