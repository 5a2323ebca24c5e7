"""What can be wrong with a binlog stream. Each says where, what it means and what to do."""

from __future__ import annotations


class BinlogError(Exception):
    """The stream cannot be followed: going on would lose or falsify rows. Fatal for the task."""


class GtidModeError(BinlogError):
    """The server does not send transactions that its present gtid_mode would not write.

    ``wanted``: the gtid_mode in which it sends them; ON: of MySQL 5.6, which takes a restart.
    """

    def __init__(self, message: str, wanted: str) -> None:
        super().__init__(message)
        self.wanted = wanted


class WithoutGtidError(BinlogError):
    """There are transactions without a GTID where only GTIDs show what was read."""


class AccessRefusedError(BinlogError):
    """The server does not let the account in, or not read the binlog; the binlog is all right."""


class PurgedError(BinlogError):
    """The server no longer has the position or the GTIDs that were asked for."""


class OtherServerError(BinlogError):
    """The server is not the one that wrote what was read: positions of the two do not compare."""


class OtherNamesError(BinlogError):
    """The server took other names of tables for the same when it wrote what was read."""


class OtherBinlogError(BinlogError):
    """The server's binlog is not the one that was read: it was begun anew, or lost its end."""


class AnchorGoneError(OtherBinlogError):
    """The event that was read last is no longer in its place.

    ``read``: it is one of a transaction, not the beginning of a file.
    """

    def __init__(self, message: str, *, read: bool) -> None:
        super().__init__(message)
        self.read = read


class OtherOrderError(BinlogError):
    """Another server's binlog has other transactions, or another order, where places are sought."""


class DamagedStreamError(BinlogError):
    """What was received contradicts itself: it was damaged on its way, or in the binlog file.

    Reading it again tells which: what was damaged on its way is sound the next time.
    """


DAMAGED = (
    "The file or the network damaged it: check the file with mysqlbinlog --verify-binlog-checksum"
    " on the source. Nothing behind the last sound boundary was taken; reading goes on from there"
)
"""Behind what was seen of a damage: what it means, and what to do."""


class ChecksumError(DamagedStreamError):
    """An event's CRC32 does not match its bytes."""


class UnsupportedEventError(BinlogError):
    """An event that could carry data and cannot be read."""


class StreamLostError(Exception):
    """The connection broke or went silent: reconnecting and reading on is safe. Transient."""
