"""The heads of transactions in a binlog: where each begins, and its GTID; nothing inside is read.

For finding places in a binlog that was not followed before. Which events begin a transaction:
`replicator.binlog.reading_state`.
"""

from __future__ import annotations

from replicator.binlog.events import HEAD, SERVER_ID, EventType
from replicator.binlog.file_state import FileState, is_artificial
from replicator.binlog.gtid import MariaDBGtid, MySQLGtid, listed_gtids
from replicator.binlog.headers import read_mariadb_gtid, read_mysql_gtid, read_tagged_gtid
from replicator.binlog.position import BinlogPosition, SourcePosition


class TransactionHeads:
    """Takes the events of a stream, one after the other.

    Of the newest transaction that begins: ``key`` of its beginning, ``gtid`` (None: it has none);
    of MariaDB ``before``: the last GTID of its domain before it, if there was one, and ``written``:
    the last numbers before it by domain and server.
    ``waiting``: the source has said that there is no more.
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
        self.waiting = False
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
            case _:
                return False
        self._finish()
        self.before = self._newest.get(gtid.domain) if isinstance(gtid, MariaDBGtid) else None
        self.key = self._files.position.begin_group(size)
        self.gtid, self._head, self._open = gtid, event, True
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
