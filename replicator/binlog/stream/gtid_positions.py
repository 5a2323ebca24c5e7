"""The heads of transactions in a binlog: where each begins, and its GTID; nothing inside is read.

For finding places in a binlog that was not followed before. Which events begin a transaction:
`replicator.binlog.parser.parser_state`.

Finding in a server's binlog the places that another server's binlog had, by their GTIDs.

The binlogs of a primary and of its replicas hold the same transactions at other places. What was
read of one is continued in the other where exactly the same transactions stand before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from replicator.binlog.connection.dump_connection import BinlogConnection
from replicator.binlog.connection.framing import PacketBuffer
from replicator.binlog.errors import OtherOrderError, WithoutGtidError
from replicator.binlog.events.anchor_event import FIRST_EVENT, fingerprint
from replicator.binlog.events.event_header import HEAD, SERVER_ID, TIMESTAMP, EventType
from replicator.binlog.events.structural_events import (
    read_mariadb_gtid,
    read_mysql_gtid,
    read_tagged_gtid,
)
from replicator.binlog.parser.file_state import FileState, is_artificial
from replicator.binlog.positions.gtid import (
    GtidStart,
    MariaDBGtid,
    MariaDBGtids,
    MySQLGtid,
    listed_gtids,
    mariadb_gtids,
)
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.mysql.server.identity import AnchorEvent


class TransactionHeads:
    """Takes the events of a stream, one after the other.

    Of the newest transaction that begins: ``key`` of its beginning, ``gtid`` (None: it has none);
    of MariaDB ``before``: the last GTID of its domain before it, if there was one, and ``written``:
    the last numbers before it by domain and server.
    ``timestamp``: when that was written, in seconds by the source's clock.
    ``waiting``: the source has said that there is no more. ``headless``: there are statements of no
    transaction that has a head, as MySQL 5.6 writes them without GTIDs.
    """

    def __init__(
        self, start: BinlogPosition | None, *, checksums: bool, unlogged: str = ""
    ) -> None:
        """``start`` is the beginning of a file, which tells the GTIDs before it; None where only
        the stream tells where it begins. ``unlogged``: of a MySQL, what was executed besides."""
        self.key = 0
        self.gtid: MariaDBGtid | MySQLGtid | None = None
        self.before: MariaDBGtid | None = None
        self.written: dict[tuple[int, int], int] = {}
        self.timestamp = 0
        self.waiting = False
        self.headless = False
        self._unlogged = unlogged
        self._newest: dict[int, MariaDBGtid] = {}
        self._files = FileState(SourcePosition(start) if start else None, None, checksums=checksums)
        self._head: bytes | None = None
        self._open = False

    @property
    def boundary(self) -> SourcePosition:
        """The boundary before the newest transaction, with the GTIDs executed before it; the end
        of the binlog where the source waits."""
        return self._files.boundary

    def is_event(self, anchor: AnchorEvent) -> bool:
        """Whether the newest transaction begins with this event, in a file that was begun before.

        If the file was begun in the same second, the event may have been written again after a
        reset of the binlog.
        """
        if self._head is None or self.timestamp <= self._files.created:
            return False
        return fingerprint(self._head, self._files.cut) == anchor.fingerprint

    def take(self, event: bytes) -> bool:
        """Whether a transaction begins with this event. Raises BinlogError for a damaged one."""
        files, position = self._files, self._files.position
        if self._head is not None:
            files.begins_group(position.boundary.offset, self._head)
            self._head = None
        kind, size, _ = HEAD.unpack_from(event)
        files.advance(event)
        self.waiting = kind in (EventType.HEARTBEAT, EventType.HEARTBEAT_V2)
        if self.waiting:
            self._finish()
            files.on_heartbeat(event)
        elif kind == EventType.ROTATE:
            # The last transaction of a file that a crash has broken off is whole, too.
            self._finish()
            files.on_rotate(event)
        elif kind == EventType.FORMAT_DESCRIPTION:
            files.on_format_description(event)
        elif kind == EventType.PREVIOUS_GTIDS:
            files.on_previous_gtids(event)
            files.executed_before(self._unlogged)
        elif kind == EventType.MARIADB_GTID_LIST:
            files.on_gtid_list(event)
            if not self.written and not is_artificial(event):
                for listed in listed_gtids(files.content(event)):
                    self._note(listed)
        else:
            return self._take_head(kind, size, event)
        return False

    def _take_head(self, kind: int, size: int, event: bytes) -> bool:
        content = self._files.content
        match kind:
            case EventType.GTID:
                gtid: MariaDBGtid | MySQLGtid | None = read_mysql_gtid(content(event))
            case EventType.GTID_TAGGED:
                gtid = read_tagged_gtid(content(event))
            case EventType.MARIADB_GTID:
                server = SERVER_ID.unpack_from(event, 5)[0]
                gtid = read_mariadb_gtid(content(event), server).gtid
            case EventType.ANONYMOUS_GTID:
                gtid = None
            case EventType.QUERY if not self._open:
                self.headless = True
                return False
            case _:
                return False
        self._finish()
        self.before = self._newest.get(gtid.domain) if isinstance(gtid, MariaDBGtid) else None
        self.key = self._files.position.begin_group(size)
        self.gtid, self._head, self._open = gtid, event, True
        self.timestamp = TIMESTAMP.unpack_from(event)[0]
        return True

    def _finish(self) -> None:
        """The newest transaction has come to its end."""
        if self._open:
            self._files.executed(self.gtid)
            if isinstance(self.gtid, MariaDBGtid):
                self._note(self.gtid)
            self._open = False

    def _note(self, gtid: MariaDBGtid) -> None:
        self.written[gtid.domain, gtid.server] = gtid.sequence
        self._newest[gtid.domain] = gtid


Connect = Callable[[SourcePosition | GtidStart], BinlogConnection]
"""Makes a connection that starts there; it is used up by one reading."""


@dataclass(frozen=True, slots=True)
class GtidSearch:
    """Places of another binlog. ``executed``: the GTID set at the saved position.

    ``boundaries``: GTID sets of later boundaries; ``transactions``: GTIDs of later transactions.
    ``left``: of MariaDB, at each earlier failover, what the server that took over had of each.
    ``unlogged``: of MySQL, what this server has executed and does not have in its binlog, as after
    it was made from a backup: none of its files need tell of that.
    """

    executed: str
    boundaries: Set[str] = frozenset()
    transactions: Set[str] = frozenset()
    left: Sequence[str] = ()
    unlogged: str = ""


@dataclass(frozen=True, slots=True)
class GtidPlaces:
    """The same places in this binlog: the saved position, and the keys of the others."""

    position: SourcePosition
    boundaries: Mapping[str, int]
    transactions: Mapping[str, int]


@dataclass(slots=True)
class _Search:
    """What was found so far, from the saved position on."""

    sought: GtidSearch
    boundaries: dict[str, int] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        """Whether nothing is left to be found."""
        return (
            self.boundaries.keys() >= self.sought.boundaries
            and self.transactions.keys() >= self.sought.transactions
        )

    def look_at(self, boundary: SourcePosition, heads: TransactionHeads) -> None:
        """Note what stands at a boundary, and behind it."""
        if boundary.gtid in self.sought.boundaries:
            self.boundaries[boundary.gtid] = boundary.binlog.key
        gtid = str(heads.gtid)
        if not heads.waiting and gtid in self.sought.transactions:
            self.transactions[gtid] = heads.key


def find_places(connect: Connect, end: BinlogPosition, sought: GtidSearch) -> GtidPlaces:
    """Look for places in the binlog up to ``end``, its end of a moment ago. Blocks.

    Raises OtherOrderError where the same transactions do not stand before one of them; PurgedError,
    StreamLostError and what else a connection raises.
    """
    first = first_new(connect, end, sought.executed)
    file = BinlogPosition(first.file, FIRST_EVENT)
    position: SourcePosition | None = None
    search = _Search(sought)
    sequence = _Sequence(sought.executed)
    for heads in walk_heads(connect(SourcePosition(file)), file, sought.unlogged):
        if heads.key < first.key and not heads.waiting:
            _refuse_back_step(heads)
            continue
        boundary = heads.boundary
        if position is None:
            if boundary.gtid != sought.executed:
                raise _misplaced(sought.executed, heads)
            _refuse_unread(sought, heads)
            position = boundary
        search.look_at(boundary, heads)
        if not search.done and heads.gtid is None and not heads.waiting:
            raise WithoutGtidError(
                f"The binlog has a transaction without a GTID at {boundary.binlog}, among those"
                " that are on the target in part"
            )
        if search.done:
            return GtidPlaces(position, search.boundaries, search.transactions)
        if heads.waiting or boundary.binlog.key >= end.key:
            break
        sequence.follow(heads.gtid, boundary)
    missing = (sought.boundaries - search.boundaries.keys()) | (
        sought.transactions - search.transactions.keys()
    )
    raise OtherOrderError(
        "Its binlog has the transactions that are on the target in another order than the former"
        f" server. At no position are exactly these executed: {'; '.join(sorted(missing))}."
    )


def _refuse_back_step(heads: TransactionHeads) -> None:
    """Raise OtherOrderError where a number of a MariaDB domain comes again, or is passed, after the
    same server had written before: another one has written in between.

    What a replica had written itself before it became one is not that.
    """
    gtid, before = heads.gtid, heads.before
    if not isinstance(gtid, MariaDBGtid) or (gtid.domain, gtid.server) not in heads.written:
        return
    if before is not None and gtid.sequence <= before.sequence:
        raise OtherOrderError(
            f"In its binlog {gtid} follows {before} (at {heads.boundary.binlog}): one of them was"
            " written independently of the other's server, so the task may not have read it"
            " there."
        )


def _refuse_unread(sought: GtidSearch, heads: TransactionHeads) -> None:
    """Raise OtherOrderError where a MariaDB has transactions before the place to go on from that a
    server wrote after it was left. MySQL's sets tell them themselves."""
    known: dict[tuple[int, int], int] = {}
    for text in (*sought.left, sought.executed) if heads.written else ():
        for gtid in mariadb_gtids(text):
            key = gtid.domain, gtid.server
            known[key] = max(gtid.sequence, known.get(key, 0))
    for (domain, server), number in sorted(heads.written.items()):
        if 0 < known.get((domain, server), 0) < number:
            raise OtherOrderError(
                f"Its binlog has transactions up to {domain}-{server}-{number}, and of that"
                f" server those up to {domain}-{server}-{known[domain, server]} had reached the"
                " one that took over from it."
            )


class _Sequence:
    """Whether the numbers of MariaDB's transactions go up by one: the last GTID of a domain tells
    what was executed before only then. MySQL's sets tell it themselves."""

    def __init__(self, executed: str) -> None:
        self._executed = executed
        self._last: MariaDBGtids | None = None

    def follow(self, gtid: MariaDBGtid | MySQLGtid | None, where: SourcePosition) -> None:
        """Take the next transaction. Raises OtherOrderError."""
        if not isinstance(gtid, MariaDBGtid):
            return
        if self._last is None:
            self._last = MariaDBGtids(self._executed)
        before = self._last.newest(gtid.domain)
        if before is not None and gtid.sequence != before.sequence + 1:
            raise OtherOrderError(
                f"In its binlog {gtid} follows {before} (at {where.binlog}), so the task can't"
                " tell the transactions that are on the target from others."
            )
        self._last.add(gtid)


def _misplaced(executed: str, heads: TransactionHeads) -> OtherOrderError:
    there = heads.boundary
    first = "its end" if heads.waiting else f"the first transaction that is new ({heads.gtid})"
    return OtherOrderError(
        f"At {there.binlog}, before {first}, its binlog has {there.gtid or 'no GTIDs'}, but the"
        f" task has read from the former server {executed}: one of them has transactions that the"
        " other lacks, or has them in another order."
    )


def first_new(connect: Connect, end: BinlogPosition, executed: str) -> BinlogPosition:
    """Where the first transaction begins that a GTID set lacks; ``end`` where it lacks none.

    Blocks, and raises what a connection raises.
    """
    for heads in walk_heads(connect(GtidStart(executed)), None):
        boundary = heads.boundary.binlog
        if not heads.waiting:
            return boundary
        if boundary.file and boundary.key >= end.key:
            break
    return end


def gtids_at(connect: Connect, end: BinlogPosition, position: BinlogPosition) -> str:
    """The GTID set executed at a position; empty where no transaction begins there, nor the binlog
    ends, or if the transaction before it in its file has no GTID. Blocks, and raises what a
    connection raises."""
    file = BinlogPosition(position.file, FIRST_EVENT)
    nameless = False
    for heads in walk_heads(connect(SourcePosition(file)), file):
        boundary = heads.boundary
        if boundary.binlog.key >= position.key:
            return boundary.gtid if boundary.binlog == position and not nameless else ""
        nameless = heads.gtid is None or heads.headless
        if heads.waiting or boundary.binlog.key >= end.key:
            break
    return ""


def first_since(
    connect: Connect, end: BinlogPosition, file: str, moment: int
) -> BinlogPosition | None:
    """Where the first transaction begins that was written at ``moment`` or later, from a file on;
    ``end`` where there is none. None where it can't be told (`headless`).

    ``moment``: seconds since the epoch, by the source's clock. Blocks, and raises what a connection
    raises.
    """
    start = BinlogPosition(file, FIRST_EVENT)
    for heads in walk_heads(connect(SourcePosition(start)), start):
        boundary = heads.boundary.binlog
        if heads.headless:
            return None
        if not heads.waiting and (heads.timestamp >= moment or boundary.key >= end.key):
            return boundary
        if heads.waiting and boundary.key >= end.key:
            return end
    return end


def walk_heads(
    connection: BinlogConnection, start: BinlogPosition | None, unlogged: str = ""
) -> Iterator[TransactionHeads]:
    """Yield the heads of the transactions, at each of them, and where the source waits for more."""
    try:
        info, _ = connection.open()
        heads = TransactionHeads(start, checksums=info.checksum == "CRC32", unlogged=unlogged)
        packets = PacketBuffer()
        while True:
            packets.received(connection.receive(packets.room(), wait=True))
            while (event := packets.next_event()) is not None:
                if heads.take(event) or heads.waiting:
                    yield heads
            if packets.failure is not None:
                raise connection.failure(packets.failure.code, packets.failure.message)
    finally:
        connection.close()
