"""The events of XA transactions in the binlog.

If a server logs the two phases separately (MySQL 5.7+, MariaDB 10.5+), the rows are in a group that
an XA_PREPARE event ends. Another group, at any later time, is the statement XA COMMIT or XA
ROLLBACK. Sources of the formats: MySQL's comments on XA_prepare_event (``control_events.h``);
MariaDB's XA_prepare_log_event (``log_event.h``). Servers write the statements in one form only:
``XA COMMIT X'78',X'',1``. MySQL accepts a format beyond 32 bits: it is complete in the statements,
and truncated in the event. So if a statement begins the group (MySQL), the name is read from the
statement.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from replicator.binlog.errors import BinlogError, UnsupportedEventError
from replicator.binlog.positions.position import BinlogPosition

_PREPARE = struct.Struct("<BIII")
"""Bytes: commit in one phase 1, format 4, lengths of both parts 4 and 4; then the parts."""
_FORMAT_BITS = (1 << 32) - 1
_NAMED = re.compile(
    r"\s*XA\s+(START|COMMIT|ROLLBACK)\s+X'([0-9a-f]*)'\s*,\s*X'([0-9a-f]*)'\s*,\s*(-?\d+)\s*\Z",
    re.IGNORECASE,
)


class Xid(NamedTuple):
    """The name of an XA transaction: format, global part, branch."""

    format: int
    globally: bytes
    branch: bytes

    def __str__(self) -> str:
        return f"X'{self.globally.hex()}',X'{self.branch.hex()}',{self.format}"


class XaOutcome(NamedTuple):
    """The outcome of a prepared transaction."""

    xid: Xid
    committed: bool


class UnknownTransactionError(UnsupportedEventError):
    """A committed XA transaction was prepared before the first event that was read.

    ``xid`` is its name; ``at`` is the position at which the group of the XA COMMIT begins.
    """

    def __init__(self, xid: Xid, at: BinlogPosition) -> None:
        super().__init__(
            f"The XA transaction {xid} is committed at {at}, and its rows are not known: it was"
            " prepared before the position that reading began at, in a session that did not log"
            " (sql_log_bin=0), or in a binlog file that is gone."
        )
        self.xid = xid
        self.at = at


def read_xa_prepare(body: bytes) -> tuple[Xid, bool]:
    """Return the transaction that the event ends, and whether the event commits it (ONE PHASE).

    ``body`` has no header and no checksum. Raises BinlogError if it is too short.
    """
    try:
        one_phase, kind, first, second = _PREPARE.unpack_from(body)
    except struct.error as error:
        raise BinlogError("An XA_PREPARE event is too short.") from error
    if one_phase > 1:
        raise BinlogError(f"An XA_PREPARE event has the phase {one_phase}, which there is not.")
    start, middle, end = _PREPARE.size, _PREPARE.size + first, _PREPARE.size + first + second
    if len(body) < end:
        raise BinlogError("An XA_PREPARE event ends inside the name of its transaction.")
    return Xid(kind, body[start:middle], body[middle:end]), bool(one_phase)


def xa_prepare_body(xid: Xid, *, one_phase: bool) -> bytes:
    """Return the body that `read_xa_prepare` reads."""
    kind = xid.format & _FORMAT_BITS
    head = _PREPARE.pack(one_phase, kind, len(xid.globally), len(xid.branch))
    return head + xid.globally + xid.branch


def are_alike(named: Xid, cut: Xid) -> bool:
    """Return whether an event can belong to a transaction.

    ``cut``: the event's name of the transaction, with 32 bits of the format.
    """
    return named._replace(format=named.format & _FORMAT_BITS) == cut


def read_start(sql: str) -> Xid | None:
    """Return the transaction that an XA START begins; None for anything else."""
    word, xid = _read_named(sql)
    return xid if word == "START" else None


def read_outcome(sql: str) -> XaOutcome | None:
    """Return the outcome in an XA COMMIT or XA ROLLBACK; None for anything else."""
    word, xid = _read_named(sql)
    return None if xid is None or word == "START" else XaOutcome(xid, word == "COMMIT")


def _read_named(sql: str) -> tuple[str, Xid | None]:
    match = _NAMED.match(sql)
    if match is None:
        return "", None
    word, globally, branch, kind = match.groups()
    return word.upper(), Xid(int(kind), bytes.fromhex(globally), bytes.fromhex(branch))
