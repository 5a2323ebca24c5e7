"""Sets of executed GTIDs: MariaDB's last GTID per domain, MySQL's intervals per UUID and tag.

Sources: MariaDB KB, "Global Transaction ID"; MySQL manual, "GTID Format and Storage"; the binary
form is that of COM_BINLOG_DUMP_GTID and PREVIOUS_GTIDS_EVENT (MySQL internals manual; for tags:
MySQL's comments on Gtid_set::encode).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from struct import Struct
from uuid import UUID

from pymysqlreplication.gtid import Gtid

from replicator.binlog.errors import BinlogError, UnsupportedEventError
from replicator.binlog.positions.position import BinlogPosition
from replicator.binlog.positions.tagged_gtid import TAG, PackedReader, packed_tag
from replicator.mysql.server.identity import AnchorEvent

_COUNT = Struct("<Q")
_INTERVAL = Struct("<QQ")
_LIST_ENTRY = Struct("<IIQ")
_UUID_SIZE = 16
_LARGEST_SET = 64 << 20
"""Maximum bytes of a set: about four million gaps."""
_TAGGED = 1
"""The format of a set with tags; a set without tags has format 0."""


@dataclass(frozen=True, slots=True)
class GtidStart:
    """A start in a source's binlog: after all the GTIDs of this set.

    ``anchor`` and ``prepared`` are as in `SourcePosition`, if the set was read from the binlog.
    """

    gtid: str
    anchor: AnchorEvent | None = field(default=None, compare=False, repr=False)
    prepared: tuple[BinlogPosition, ...] = ()

    def __str__(self) -> str:
        return self.gtid or "the first GTID"

    def normalised(self, *, mariadb: bool) -> str:
        """Return the set as it is saved. Raises BinlogError if it is not a GTID set."""
        return str(MariaDBGtids(self.gtid) if mariadb else MySQLGtids(self.gtid))


@dataclass(frozen=True, slots=True)
class MariaDBGtid:
    """``domain-server-sequence``."""

    domain: int
    server: int
    sequence: int

    def __str__(self) -> str:
        return f"{self.domain}-{self.server}-{self.sequence}"


@dataclass(frozen=True, slots=True)
class MySQLGtid:
    """``uuid:number`` or ``uuid:tag:number``; ``source``: the 16 bytes of the UUID."""

    source: bytes
    number: int
    tag: str = ""

    def __str__(self) -> str:
        return ":".join(filter(None, (str(UUID(bytes=self.source)), self.tag, str(self.number))))


class MariaDBGtids:
    """The last GTID of each replication domain."""

    def __init__(self, text: str = "") -> None:
        """Parse ``0-1-42,1-2-7``; raises BinlogError for anything else."""
        self._last: dict[int, MariaDBGtid] = {}
        for gtid in mariadb_gtids(text):
            self.add(gtid)

    @classmethod
    def from_list_event(cls, body: bytes) -> MariaDBGtids:
        """Return the state in a GTID_LIST event, whose last entry of a domain is the newest."""
        gtids = cls()
        for gtid in listed_gtids(body):
            gtids.add(gtid)
        return gtids

    def is_within(self, state: str) -> bool:
        """Return whether a server with this ``@@gtid_binlog_state`` has written all these GTIDs.

        The state has the last number of each server in each domain, so this is correct even if the
        numbers of several servers are out of order. If only some domains are missing, FLUSH BINARY
        LOGS DELETE_DOMAIN_ID removed them.
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

    @property
    def domains(self) -> set[int]:
        """The domains that have a GTID."""
        return set(self._last)

    def lacks(self, listed: Iterable[MariaDBGtid]) -> MariaDBGtid | None:
        """Return a listed GTID that is newer than the known one of its domain, or None.

        Only known domains count. The last GTID of each domain in ``listed`` is the newest.
        """
        newest = {gtid.domain: gtid for gtid in listed}
        for domain, known in self._last.items():
            gtid = newest.get(domain, known)
            if gtid.server != known.server or gtid.sequence > known.sequence:
                return gtid
        return None

    def newest(self, domain: int) -> MariaDBGtid | None:
        """Return the last GTID of a domain, or None."""
        return self._last.get(domain)

    def __str__(self) -> str:
        return ",".join(str(self._last[domain]) for domain in sorted(self._last))


class MySQLGtids:
    """Executed transaction numbers per server UUID and tag, as sorted disjoint intervals."""

    def __init__(self, text: str = "") -> None:
        """Parse ``uuid:1-5:7:tag:1-3,uuid:1``; raises BinlogError for anything else."""
        self._intervals: dict[tuple[bytes, str], list[tuple[int, int]]] = {}
        self.add_set(text)

    def add_set(self, text: str) -> None:
        """Record a set of the same form. Raises BinlogError for anything else."""
        for item in _items(text):
            name, *parts = (part.strip() for part in item.split(":"))
            try:
                for tag, ranges in _by_tag(parts):
                    source, intervals = _parsed(name, ranges)
                    for interval in intervals:
                        self._insert(source, tag, *interval)
            except ValueError as error:
                raise BinlogError(
                    f"{item!r} is not a MySQL GTID set (uuid:1-5,uuid:7,uuid:tag:1). "
                    "Take the value of @@gtid_executed on the source."
                ) from error

    @classmethod
    def decode(cls, body: bytes) -> MySQLGtids:
        """Return the set in a PREVIOUS_GTIDS event.

        Raises UnsupportedEventError for an unknown format, BinlogError for damaged bytes.
        """
        if len(body) > _LARGEST_SET:
            raise BinlogError(f"A GTID set of {len(body)} bytes is larger than any server has.")
        gtids = cls()
        reader = PackedReader(body)
        (count,) = _COUNT.unpack(reader.take(_COUNT.size))
        kind = count >> 56
        if kind > _TAGGED:
            raise UnsupportedEventError(
                f"The set of executed GTIDs is in format {kind}, which this program does not know."
            )
        if kind == _TAGGED:
            # The lowest byte repeats the format.
            count = (count & (1 << 56) - 1) >> 8
        for _ in range(count):
            source = reader.take(_UUID_SIZE)
            tag = reader.tag() if kind == _TAGGED else ""
            (intervals,) = _COUNT.unpack(reader.take(_COUNT.size))
            for _ in range(intervals):
                first, end = _INTERVAL.unpack(reader.take(_INTERVAL.size))
                if not 0 < first < end:
                    raise BinlogError(
                        f"A GTID set holds the interval {first}-{end - 1}: the bytes are damaged."
                    )
                gtids._add_run(source, tag, first, end)
        return gtids

    def encode(self) -> bytes:
        """Return the binary form of COM_BINLOG_DUMP_GTID.

        A set without tags has the old form, for servers that do not know tags.
        """
        tagged = any(tag for _, tag in self._intervals)
        count = len(self._intervals)
        parts = [_COUNT.pack(_TAGGED << 56 | count << 8 | _TAGGED if tagged else count)]
        for source, tag in sorted(self._intervals):
            intervals = self._intervals[source, tag]
            parts += [source, packed_tag(tag) if tagged else b"", _COUNT.pack(len(intervals))]
            parts += [_INTERVAL.pack(*interval) for interval in intervals]
        return b"".join(parts)

    def add(self, gtid: MariaDBGtid | MySQLGtid) -> None:
        """Record an executed transaction."""
        if not isinstance(gtid, MySQLGtid):
            raise TypeError(gtid)
        self._add_run(gtid.source, gtid.tag, gtid.number, gtid.number + 1)

    def add_run(self, source: bytes, first: int, end: int) -> None:
        """Record a server's transactions without tag from number ``first`` to before ``end``."""
        self._add_run(source, "", first, end)

    def lacks(self, others: MySQLGtids) -> MySQLGtid | None:
        """Return one of the other GTIDs that is not in this set, or None."""
        for (source, tag), intervals in others._intervals.items():
            own = self._intervals.get((source, tag), [])
            for first, end in intervals:
                # Adjacent intervals are merged, so one interval must contain the other completely.
                held = max((stop for begin, stop in own if begin <= first < stop), default=first)
                if held < end:
                    return MySQLGtid(source, held, tag)
        return None

    def _add_run(self, source: bytes, tag: str, first: int, end: int) -> None:
        intervals = self._intervals.get((source, tag))
        if intervals and intervals[-1][1] == first:
            intervals[-1] = (intervals[-1][0], end)
        else:
            self._insert(source, tag, first, end)

    def _insert(self, source: bytes, tag: str, first: int, end: int) -> None:
        """Merge a half-open interval into the known ones."""
        if not 0 < first < end:
            raise ValueError(f"interval {first}-{end - 1}")
        intervals = self._intervals.setdefault((source, tag), [])
        low = bisect_left(intervals, first, key=lambda interval: interval[1])
        high = low
        while high < len(intervals) and intervals[high][0] <= end:
            high += 1
        if low < high:
            first = min(first, intervals[low][0])
            end = max(end, intervals[high - 1][1])
        intervals[low:high] = [(first, end)]

    def __str__(self) -> str:
        """Format as the server does: a UUID's numbers without tag come before its tags."""
        sources = groupby(sorted(self._intervals), key=lambda key: key[0])
        return ",".join(
            ":".join((str(UUID(bytes=source)), *map(self._tag_text, keys)))
            for source, keys in sources
        )

    def _tag_text(self, key: tuple[bytes, str]) -> str:
        ranges = map(_range_text, self._intervals[key])
        return ":".join((key[1], *ranges) if key[1] else ranges)


def has_executed(executed: str, wanted: str) -> bool:
    """Return whether an executed GTID set includes the wanted one.

    As in MASTER_GTID_WAIT, MariaDB's numbers of a domain only increase: a GTID is included if the
    executed GTID of its domain has at least its number. Raises BinlogError if one of the texts is
    not a GTID set.
    """
    if is_mariadb_gtid(wanted):
        reached = MariaDBGtids(executed if is_mariadb_gtid(executed) else "")
        newest = {gtid: reached.newest(gtid.domain) for gtid in mariadb_gtids(wanted)}
        return all(at is not None and at.sequence >= gtid.sequence for gtid, at in newest.items())
    known = MySQLGtids("" if is_mariadb_gtid(executed) else executed)
    return known.lacks(MySQLGtids(wanted)) is None


def is_mariadb_gtid(text: str) -> bool:
    """Return whether a text has the form of MariaDB's GTIDs, as ``0-1-42,1-2-7``."""
    return re.fullmatch(r"\s*\d+-\d+-\d+\s*(,\s*\d+-\d+-\d+\s*)*", text) is not None


def mariadb_gtids(text: str) -> list[MariaDBGtid]:
    """Return the GTIDs of a list; a domain can have several.

    Raises BinlogError if an item is not a GTID.
    """
    found = []
    for item in _items(text):
        parts = item.split("-")
        if len(parts) != 3 or not all(part.isdecimal() for part in parts):
            raise BinlogError(
                f"{item!r} is not a MariaDB GTID (domain-server-sequence, like 0-1-42). "
                "Take the value of @@gtid_binlog_pos on the source."
            )
        found.append(MariaDBGtid(*map(int, parts)))
    return found


def listed_gtids(body: bytes) -> Iterator[MariaDBGtid]:
    """Yield the entries of a GTID_LIST event: the last GTID of each server in each domain.

    Raises BinlogError if their number does not fit into the event.
    """
    count = int.from_bytes(body[:4], "little") & 0x0FFFFFFF
    if 4 + count * _LIST_ENTRY.size > len(body):
        raise BinlogError(f"A list of {count} GTIDs stands in {len(body)} bytes: it is damaged.")
    for number in range(count):
        domain, server, sequence = _LIST_ENTRY.unpack_from(body, 4 + number * _LIST_ENTRY.size)
        yield MariaDBGtid(domain, server, sequence)


def _items(text: str) -> list[str]:
    # Servers break the lines of long GTID texts.
    return [item.strip() for item in text.split(",") if item.strip()]


def _by_tag(parts: list[str]) -> list[tuple[str, list[str]]]:
    """Return the intervals of a UUID by tag ("": no tag). Raises ValueError."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for part in parts:
        if TAG.fullmatch(part.lower()):
            found.append((part.lower(), []))
        else:
            found[-1][1].append(part)
    if not found[0][1] and len(found) > 1:
        del found[0]
    return found


def _parsed(name: str, ranges: list[str]) -> tuple[bytes, list[tuple[int, int]]]:
    """Return the bytes of a UUID and its half-open intervals. Raises ValueError."""
    _, intervals = Gtid.parse(":".join([str(UUID(name)), *ranges]))
    return UUID(name).bytes, intervals


def _range_text(interval: tuple[int, int]) -> str:
    first, end = interval
    return str(first) if end == first + 1 else f"{first}-{end - 1}"
