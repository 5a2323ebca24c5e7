"""Finds positions of transactions in a binlog that was not followed before, by headers only.

The binlogs of a primary and its replicas have the same transactions at different positions. Reading
continues in another server's binlog at the position before which it has exactly the same
transactions. Events that begin a transaction: `replicator.binlog.parser.parser_state`.
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
    """Follows the events of a stream, and has the newest transaction's header.

    Attributes:
        key: key of the transaction's beginning.
        gtid: None if the transaction has none.
        before: for MariaDB, the last GTID of its domain before it, if any.
        written: for MariaDB, the last numbers before it by domain and server.
        timestamp: when it was written, in seconds by the source's clock.
        waiting: whether the source has reported that it has no more events.
        headless: whether some statements belong to no transaction with a header, as MySQL 5.6
            writes them without GTIDs.
    """

    def __init__(
        self, start: BinlogPosition | None, *, checksums: bool, unlogged: str = ""
    ) -> None:
        """Begin at ``start``, the beginning of a file, which has the GTIDs before it.

        ``start``: None if only the stream shows its start. ``unlogged``: for MySQL, executed GTIDs
        that are in no file.
        """
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
        """The boundary before the newest transaction, with the GTIDs executed before it.

        If the source waits, the end of the binlog.
        """
        return self._files.boundary

    def is_event(self, anchor: AnchorEvent) -> bool:
        """Return whether the newest transaction begins with this event, in an older file.

        If the file was created in the same second, the event may have been written again after a
        reset of the binlog.
        """
        if self._head is None or self.timestamp <= self._files.created:
            return False
        return fingerprint(self._head, self._files.cut) == anchor.fingerprint

    def take(self, event: bytes) -> bool:
        """Return whether this event begins a transaction. Raises BinlogError if it is damaged."""
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
            # If a crash ended a file, its last transaction is still complete.
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
        if self._open:
            self._files.executed(self.gtid)
            if isinstance(self.gtid, MariaDBGtid):
                self._note(self.gtid)
            self._open = False

    def _note(self, gtid: MariaDBGtid) -> None:
        self.written[gtid.domain, gtid.server] = gtid.sequence
        self._newest[gtid.domain] = gtid


Connect = Callable[[SourcePosition | GtidStart], BinlogConnection]
"""Makes a connection that starts at a position; it can be read once."""


@dataclass(frozen=True, slots=True)
class GtidSearch:
    """The transactions to find in another server's binlog.

    Attributes:
        executed: the GTID set at the saved position.
        boundaries: GTID sets of later boundaries.
        transactions: GTIDs of later transactions.
        left: for MariaDB, the GTIDs that the new server had at each earlier failover.
        unlogged: for MySQL, GTIDs that this server has executed but not logged, for example after
            it was made from a backup; its files need not list them.
    """

    executed: str
    boundaries: Set[str] = frozenset()
    transactions: Set[str] = frozenset()
    left: Sequence[str] = ()
    unlogged: str = ""


@dataclass(frozen=True, slots=True)
class GtidPlaces:
    """The same positions in this binlog: the saved position, and the keys of the others."""

    position: SourcePosition
    boundaries: Mapping[str, int]
    transactions: Mapping[str, int]


@dataclass(slots=True)
class _Search:
    """The places found so far, from the saved position on."""

    sought: GtidSearch
    boundaries: dict[str, int] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        return (
            self.boundaries.keys() >= self.sought.boundaries
            and self.transactions.keys() >= self.sought.transactions
        )

    def look_at(self, boundary: SourcePosition, heads: TransactionHeads) -> None:
        if boundary.gtid in self.sought.boundaries:
            self.boundaries[boundary.gtid] = boundary.binlog.key
        gtid = str(heads.gtid)
        if not heads.waiting and gtid in self.sought.transactions:
            self.transactions[gtid] = heads.key


def find_places(connect: Connect, end: BinlogPosition, sought: GtidSearch) -> GtidPlaces:
    """Find places in the binlog up to ``end``, its recent end. Blocks.

    Raises OtherOrderError if other transactions precede one of them; PurgedError, StreamLostError
    and the other errors of a connection.
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
    """Raise OtherOrderError if a number of a MariaDB domain is not higher than the last one.

    Only if its server has written before: then another server has written in between. This excludes
    transactions that a replica wrote itself before it became one.
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
    """Raise OtherOrderError if a MariaDB has transactions of a server from after its failover.

    These are earlier transactions that a server wrote after the failover to another server. For
    MySQL, the GTID sets show this.
    """
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
    """Checks that MariaDB's numbers increase by one.

    Only then does the last GTID of a domain identify the transactions before it. For MySQL, the
    GTID sets do.
    """

    def __init__(self, executed: str) -> None:
        self._executed = executed
        self._last: MariaDBGtids | None = None

    def follow(self, gtid: MariaDBGtid | MySQLGtid | None, where: SourcePosition) -> None:
        """Check the next transaction. Raises OtherOrderError."""
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
    """Return the position of the first transaction that a GTID set lacks; ``end`` if there is none.

    Blocks, and raises the errors of a connection.
    """
    for heads in walk_heads(connect(GtidStart(executed)), None):
        boundary = heads.boundary.binlog
        if not heads.waiting:
            return boundary
        if boundary.file and boundary.key >= end.key:
            break
    return end


def gtids_at(connect: Connect, end: BinlogPosition, position: BinlogPosition) -> str:
    """Return the GTID set executed at a position.

    The result is empty if the position is neither the beginning of a transaction nor the end of the
    binlog, or if the previous transaction in its file has no GTID. Blocks, and raises a
    connection's errors.
    """
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
    """Return the position of the first transaction that was written at ``moment`` or later.

    Searches from ``file`` on. Returns ``end`` if there is none, None if it can't be known
    (`headless`). Blocks, and raises the errors of a connection.

    ``moment``: seconds since the epoch, by the source's clock.
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
    """Yield the state at each transaction's header, and whenever the source waits for more."""
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
