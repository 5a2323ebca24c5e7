"""Errors of a binlog stream. Each message has the position, the meaning and the remedy."""

from __future__ import annotations


class BinlogError(Exception):
    """The stream can't be followed without losing or falsifying rows. Fatal for the task."""


class GtidModeError(BinlogError):
    """The server refuses transactions that its present gtid_mode would not write.

    Attributes:
        wanted: the gtid_mode in which it sends them; ON for MySQL 5.6, which needs a restart.
    """

    def __init__(self, message: str, wanted: str) -> None:
        super().__init__(message)
        self.wanted = wanted


class WithoutGtidError(BinlogError):
    """Some transactions have no GTID, but only GTIDs show which ones were read."""


class AccessRefusedError(BinlogError):
    """The server refuses the account, or its access to the binlog; the binlog is not damaged."""


class PurgedError(BinlogError):
    """The server no longer has the requested position or GTIDs."""


class OtherServerError(BinlogError):
    """Another server wrote the events read before: positions of the two can't be compared."""


class OtherNamesError(BinlogError):
    """The server compared table names by other rules when it wrote the events read before."""


class OtherBinlogError(BinlogError):
    """The server's binlog is not the one read before: it was reset, or lost its end."""


class AnchorGoneError(OtherBinlogError):
    """The event read last is no longer at its position.

    Attributes:
        read: whether the event is part of a transaction, not the beginning of a file.
    """

    def __init__(self, message: str, *, read: bool) -> None:
        super().__init__(message)
        self.read = read


class OtherOrderError(BinlogError):
    """Another server's binlog has other transactions, or another order, so positions don't map."""


class DamagedStreamError(BinlogError):
    """The received data contradicts itself: it was damaged in transit, or in the binlog file.

    Another read shows which: damage in transit does not occur a second time.
    """


DAMAGED = (
    "The file or the network damaged it: check the file with mysqlbinlog --verify-binlog-checksum"
    " on the source. Nothing behind the last sound boundary was taken; reading goes on from there"
)
"""The end of a message about damage: its meaning and the remedy."""


class ChecksumError(DamagedStreamError):
    """An event's CRC32 does not match its bytes."""


class UnsupportedEventError(BinlogError):
    """An event that could carry data and cannot be read."""


class StreamLostError(Exception):
    """The connection broke or was silent. Transient: reconnecting and continuing is safe."""
