"""Sets of executed GTIDs: MariaDB's last GTID per domain, MySQL's intervals per server UUID.

Sources: MariaDB KB, "Global Transaction ID"; MySQL manual, "GTID Format and Storage"; the binary
form is that of COM_BINLOG_DUMP_GTID and PREVIOUS_GTIDS_EVENT (MySQL internals manual).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from struct import Struct
from uuid import UUID

from replicator.binlog.errors import BinlogError, UnsupportedEventError
from replicator.mysql.identity import Landmark

_COUNT = Struct("<Q")
_INTERVAL = Struct("<QQ")
_LIST_ENTRY = Struct("<IIQ")
_UUID_SIZE = 16


@dataclass(frozen=True, slots=True)
class GtidStart:
    """Where to start in a source's binlog: after all the GTIDs of this set, in its text form.

    ``landmark``: as in `SourcePosition`, where the set was read from the binlog.
    """

    gtid: str
    landmark: Landmark | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class MariaDBGtid:
    """``domain-server-sequence``."""

    domain: int
    server: int
    sequence: int


@dataclass(frozen=True, slots=True)
class MySQLGtid:
    """``uuid:number``; ``source`` holds the 16 bytes of the UUID."""

    source: bytes
    number: int


class MariaDBGtids:
    """The last GTID of each replication domain."""

    def __init__(self, text: str = "") -> None:
        """Parse ``0-1-42,1-2-7``; raises BinlogError for anything else."""
        self._last: dict[int, MariaDBGtid] = {}
        for item in _items(text):
            parts = item.split("-")
            if len(parts) != 3 or not all(part.isdecimal() for part in parts):
                raise BinlogError(
                    f"{item!r} is not a MariaDB GTID (domain-server-sequence, like 0-1-42). "
                    "Take the value of @@gtid_binlog_pos on the source."
                )
            self.add(MariaDBGtid(*map(int, parts)))

    @classmethod
    def from_list_event(cls, body: bytes) -> MariaDBGtids:
        """The state that a GTID_LIST event names; within a domain the last entry is the newest."""
        gtids = cls()
        count = int.from_bytes(body[:4], "little") & 0x0FFFFFFF
        for number in range(count):
            domain, server, sequence = _LIST_ENTRY.unpack_from(body, 4 + number * _LIST_ENTRY.size)
            gtids.add(MariaDBGtid(domain, server, sequence))
        return gtids

    def is_within(self, state: str) -> bool:
        """Whether a server with this ``@@gtid_binlog_state`` has written all of these.

        The state has the last number of each server in each domain, and so tells it also where
        the numbers of several servers are out of order. A domain that is gone while others are
        there was removed by FLUSH BINARY LOGS DELETE_DOMAIN_ID.
        """
        written: dict[tuple[int, int], int] = {}
        for item in _items(state):
            domain, server, sequence = map(int, item.split("-"))
            written[domain, server] = sequence
        domains = {domain for domain, _ in written}
        known = [gtid for gtid in self._last.values() if gtid.domain in domains]
        if self._last and not known:
            return False
        return all(written.get((g.domain, g.server), 0) >= g.sequence for g in known)

    def add(self, gtid: MariaDBGtid | MySQLGtid) -> None:
        """Record an executed transaction."""
        if not isinstance(gtid, MariaDBGtid):
            raise TypeError(gtid)
        self._last[gtid.domain] = gtid

    def __str__(self) -> str:
        last = (self._last[domain] for domain in sorted(self._last))
        return ",".join(f"{gtid.domain}-{gtid.server}-{gtid.sequence}" for gtid in last)


class MySQLGtids:
    """Executed transaction numbers per server UUID, as sorted disjoint intervals."""

    def __init__(self, text: str = "") -> None:
        """Parse ``uuid:1-5:7,uuid:1``; raises BinlogError for anything else.

        UnsupportedEventError for GTIDs with tags (MySQL 8.3 and later).
        """
        self._intervals: dict[bytes, list[tuple[int, int]]] = {}
        for item in _items(text):
            name, *ranges = (part.strip() for part in item.split(":"))
            if any(part and not part[0].isdecimal() for part in ranges):
                raise UnsupportedEventError(
                    f"The GTID set {item!r} has tags (MySQL 8.3 and later), which are not "
                    "supported. Start from a binlog file and position instead."
                )
            try:
                source, intervals = _parsed(name, ranges)
                for interval in intervals:
                    self._insert(source, *interval)
            except ValueError as error:
                raise BinlogError(
                    f"{item!r} is not a MySQL GTID set (uuid:1-5,uuid:7). "
                    "Take the value of @@gtid_executed on the source."
                ) from error

    @classmethod
    def decode(cls, body: bytes) -> MySQLGtids | None:
        """The set in a PREVIOUS_GTIDS event; None for the encoding with tags (MySQL 8.3+)."""
        gtids = cls()
        count = _COUNT.unpack_from(body)[0]
        if count >> 56:
            # The tagged encoding marks itself in the highest byte; an untagged count is small.
            return None
        at = _COUNT.size
        for _ in range(count):
            source = body[at : at + _UUID_SIZE]
            intervals = _COUNT.unpack_from(body, at + _UUID_SIZE)[0]
            at += _UUID_SIZE + _COUNT.size
            for _ in range(intervals):
                gtids._insert(source, *_INTERVAL.unpack_from(body, at))
                at += _INTERVAL.size
        return gtids

    def encode(self) -> bytes:
        """The binary form of COM_BINLOG_DUMP_GTID."""
        parts = [_COUNT.pack(len(self._intervals))]
        for source, intervals in self._intervals.items():
            parts += [source, _COUNT.pack(len(intervals))]
            parts += [_INTERVAL.pack(*interval) for interval in intervals]
        return b"".join(parts)

    def add(self, gtid: MariaDBGtid | MySQLGtid) -> None:
        """Record an executed transaction."""
        if not isinstance(gtid, MySQLGtid):
            raise TypeError(gtid)
        self.add_run(gtid.source, gtid.number, gtid.number + 1)

    def add_run(self, source: bytes, first: int, end: int) -> None:
        """Record the transactions of a server from the first number to before the end."""
        intervals = self._intervals.get(source)
        if intervals and intervals[-1][1] == first:
            intervals[-1] = (intervals[-1][0], end)
        else:
            self._insert(source, first, end)

    def _insert(self, source: bytes, first: int, end: int) -> None:
        """Unite the half-open interval with those that are there."""
        if not 0 < first < end:
            raise ValueError(f"interval {first}-{end - 1}")
        intervals = self._intervals.setdefault(source, [])
        low = bisect_left(intervals, first, key=lambda interval: interval[1])
        high = low
        while high < len(intervals) and intervals[high][0] <= end:
            high += 1
        if low < high:
            first = min(first, intervals[low][0])
            end = max(end, intervals[high - 1][1])
        intervals[low:high] = [(first, end)]

    def __str__(self) -> str:
        return ",".join(
            ":".join((str(UUID(bytes=source)), *map(_range_text, self._intervals[source])))
            for source in sorted(self._intervals)
        )


def _items(text: str) -> list[str]:
    """The comma-separated parts of a GTID text; servers break the lines of long ones."""
    return [item.strip() for item in text.split(",") if item.strip()]


def _parsed(name: str, ranges: list[str]) -> tuple[bytes, list[tuple[int, int]]]:
    """The bytes of a UUID and the half-open intervals behind it. Raises ValueError."""
    # Here, since it loads a whole replication client, which no other command line should wait for.
    from pymysqlreplication.gtid import Gtid

    _, intervals = Gtid.parse(":".join([str(UUID(name)), *ranges]))
    return UUID(name).bytes, intervals


def _range_text(interval: tuple[int, int]) -> str:
    first, end = interval
    return str(first) if end == first + 1 else f"{first}-{end - 1}"
