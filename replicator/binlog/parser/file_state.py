"""The state of a binlog file between transactions: file, position, checksums, executed GTIDs."""

from __future__ import annotations

from typing import Final
from zlib import crc32

from replicator.binlog.errors import DAMAGED, ChecksumError, DamagedStreamError
from replicator.binlog.events.anchor_event import MAX_OFFSET, anchor_of, fingerprint
from replicator.binlog.events.event_header import (
    CHECKSUM_SIZE,
    CRC_RESIDUE,
    FLAG_ARTIFICIAL,
    FLAGS,
    HEAD,
    HEADER_SIZE,
    TIMESTAMP,
    EventType,
    describe,
)
from replicator.binlog.events.structural_events import Checksum, read_checksum, read_rotate
from replicator.binlog.positions.gtid import (
    MariaDBGtid,
    MariaDBGtids,
    MySQLGtid,
    MySQLGtids,
    listed_gtids,
)
from replicator.binlog.positions.position import FILE_HEADER, ReadPosition, SourcePosition
from replicator.mysql.server.identity import AnchorEvent

_HEARTBEATS: Final = (EventType.HEARTBEAT, EventType.HEARTBEAT_V2)
_BETWEEN_GROUPS: Final = frozenset(
    {
        *(EventType.GTID, EventType.ANONYMOUS_GTID, EventType.GTID_TAGGED, EventType.MARIADB_GTID),
        *(EventType.ROTATE, EventType.STOP, EventType.PREVIOUS_GTIDS),
        *(EventType.MARIADB_GTID_LIST, EventType.MARIADB_BINLOG_CHECKPOINT),
    }
)
"""Events that may follow groups that a source leaves out."""
_BEFORE_FORMAT: Final = (EventType.ROTATE, EventType.FORMAT_DESCRIPTION, *_HEARTBEATS)
"""Events that may come before the format of a file's events is known."""
_WRAP: Final = 1 << 32


class FileState:
    """The state of the binlog file that is being read.

    Attributes:
        cut: end of a slice of an event without its checksum: -4, or None without checksums.
        in_doubt: whether it is not proven yet if the file has checksums.
        by_gtid: whether the stream begins at a GTID set.
        described: whether the format of the file's events is known.
        nameless: whether the last transaction before the start may have no GTID.
    """

    __slots__ = (
        "_anchor",
        "_awaited",
        "_broken_off",
        "_created",
        "_ended",
        "_gtids",
        "_newest",
        "_tells_formats",
        "by_gtid",
        "cut",
        "described",
        "in_doubt",
        "leaves_out",
        "nameless",
        "position",
    )

    def __init__(
        self,
        start: SourcePosition | None,
        gtids: MariaDBGtids | MySQLGtids | None,
        *,
        checksums: bool,
        described: bool = True,
        nameless: bool = False,
    ) -> None:
        """Begin at ``start``; None if only the stream shows the start.

        Args:
            gtids: None if unknown.
            checksums: as the source announced; valid until the first format description.
            described: False if the stream must still name each file and its format.
        """
        self.position = ReadPosition(start.binlog if start else None)
        self.described = described
        self.nameless = nameless
        self._tells_formats = not described
        self.cut = -CHECKSUM_SIZE if checksums else None
        self.in_doubt = False
        # By GTID, a source begins with the file that has the first GTID, and leaves out earlier
        # ones. MariaDB does so in each domain, up to the requested GTID.
        self.leaves_out = self.by_gtid = start is None
        self._awaited = gtids.domains if isinstance(gtids, MariaDBGtids) else set()
        self._gtids = gtids
        self._created = 0
        # Whether the newest event ends its file, and whether the previous file has no such end.
        self._ended = self._broken_off = False
        self._anchor = start.anchor if start else None
        self._newest: tuple[str, int, bytes] | None = None

    @property
    def boundary(self) -> SourcePosition:
        """The last transaction boundary, with the GTIDs executed up to it, and an anchor event."""
        gtid = "" if self._gtids is None else str(self._gtids)
        self._settle()
        return SourcePosition(self.position.boundary, gtid, self._anchor)

    @property
    def created(self) -> int:
        """When the file was created, in seconds since the epoch by the source's clock."""
        return self._created

    def advance(self, event: bytes) -> None:
        """Advance to the end of a received event; check its bytes and its position.

        An event begins at the end of the previous one (MySQL internals manual, "Binlog Event
        header": end position). Heartbeats and artificial events have no position in the file.
        Raises ChecksumError and DamagedStreamError.
        """
        kind, size, end = HEAD.unpack_from(event)
        position = self.position
        if not self.described and kind not in _BEFORE_FORMAT:
            raise self._unannounced(event, "how the file's events are written")
        if kind != EventType.ROTATE:
            self._ended = kind == EventType.STOP
        position.before = position.offset
        position.offset += size
        if self.cut and crc32(event) != CRC_RESIDUE:
            self.check_failed(event)
        if self.in_doubt:
            self._prove(event)
        if end == position.offset:
            return
        if kind == EventType.MARIADB_START_ENCRYPTION and not end:
            # The event is at the file's beginning, and a stream repeats it at its start.
            position.stay()
            return
        begin = (end - size) % _WRAP
        if end and begin != position.before % _WRAP and not self._stands_apart(event, kind, begin):
            raise DamagedStreamError(
                f"Events are missing, repeated or out of order: the {describe(kind)} event begins"
                f" at {begin}, and the one before it ended at {position.before}. {DAMAGED}."
            )
        position.end_event(end)

    def _unannounced(self, event: bytes, what: str) -> DamagedStreamError:
        return DamagedStreamError(
            f"The {describe(event[4])} event comes before the one that says {what}. {DAMAGED}."
        )

    def _stands_apart(self, event: bytes, kind: int, begin: int) -> bool:
        if kind in _HEARTBEATS or is_artificial(event):
            return True
        if kind == EventType.FORMAT_DESCRIPTION:
            return begin == FILE_HEADER
        # Only an adjacent event may cross 4 GiB, so a lower position here means a wrong order.
        may_follow = self.leaves_out and kind in _BETWEEN_GROUPS
        return may_follow and begin >= self.position.before % _WRAP

    def _prove(self, event: bytes) -> None:
        """Check by its first event that a file without checksums really has none."""
        if is_artificial(event) or event[4] in (*_HEARTBEATS, EventType.FORMAT_DESCRIPTION):
            return
        self.in_doubt = False
        if crc32(event) == CRC_RESIDUE:
            raise DamagedStreamError(
                f"The beginning of {self.position.file} says that its events have no checksums,"
                f" but the {describe(event[4])} event has one. {DAMAGED}."
            )

    def begins_sending(self, gtid: MariaDBGtid | MySQLGtid | None) -> None:
        """Record that a group was sent: the source leaves out no more groups of its domain."""
        if isinstance(gtid, MariaDBGtid):
            self._awaited.discard(gtid.domain)
        self.leaves_out = self.leaves_out and bool(self._awaited)

    def begins_group(self, offset: int, event: bytes) -> None:
        """Record the first event of a group at this offset as the newest anchor event."""
        if offset < MAX_OFFSET:
            self._newest = self.position.file, offset, event

    def _settle(self) -> None:
        """Make the anchor event from the newest event; only on demand, for speed."""
        if self._newest is not None:
            file, offset, event = self._newest
            self._anchor = AnchorEvent(file, offset, self._created, fingerprint(event, self.cut))
            self._newest = None

    def executed(self, gtid: MariaDBGtid | MySQLGtid | None) -> None:
        """Record a finished transaction; ``gtid`` is None if it has none."""
        if gtid is not None and self._gtids is not None:
            self._gtids.add(gtid)

    def executed_run(self, source: bytes, first: int, end: int) -> None:
        """Record finished transactions of a MySQL server, from ``first`` to before ``end``."""
        if isinstance(self._gtids, MySQLGtids):
            self._gtids.add_run(source, first, end)

    def executed_before(self, gtids: str) -> None:
        """Record the GTIDs that a MySQL server has executed before this file."""
        if isinstance(self._gtids, MySQLGtids):
            self._gtids.add_set(gtids)

    def content(self, event: bytes) -> bytes:
        """Return the event without its header and its checksum."""
        return event[HEADER_SIZE : self.cut]

    def on_format_description(self, event: bytes) -> None:
        """Begin a file. Its checksum algorithm is valid from here on."""
        checksum = read_checksum(event)
        if checksum is Checksum.CRC32 and crc32(event) != CRC_RESIDUE:
            self._raise_checksum(event)
        if self._tells_formats and not self.position.file:
            raise self._unannounced(event, "which file is sent")
        self._settle()
        self.described = True
        self.cut = -CHECKSUM_SIZE if checksum is Checksum.CRC32 else None
        self.in_doubt = self.cut is None
        self._created = TIMESTAMP.unpack_from(event)[0]
        file = self.position.file
        if file and (self._anchor is None or self._anchor.file != file):
            self._anchor = anchor_of(file, event)
        # At the start of a stream, its position is before the requested one.
        self.position.offset = max(self.position.before, HEAD.unpack_from(event)[2])

    def on_rotate(self, event: bytes) -> bool:
        """Continue in another file; return True if a file has ended.

        Artificial events only name the file of the following events.
        """
        position = self.position
        file, offset = read_rotate(self.content(event))
        left = position.file
        if file != left:
            self._broken_off = bool(left) and is_artificial(event) and not self._ended
            position.rotate(file, offset)
            self.described = not self._tells_formats
        elif is_artificial(event):
            position.stay()
        return bool(left) and file != left

    def on_heartbeat(self, event: bytes) -> bool:
        """Handle a heartbeat: the source is idle, between transactions at the event's position.

        Return True if that is the known position.
        """
        position = self.position
        position.stay()
        end = HEAD.unpack_from(event)[2]
        if event[4] != EventType.HEARTBEAT or not end:
            return False
        if self.content(event).decode("utf-8", "replace") != position.file:
            return False
        if end == position.before % _WRAP:
            # A repeated position means that the source leaves out no more groups.
            self.leaves_out = False
            position.pass_boundary()
            return True
        # A lower position can't be beyond 4 GiB, since only an adjacent event can cross this limit.
        if not self.by_gtid or end < position.before % _WRAP:
            raise self._stands_elsewhere(end)
        # MySQL reports this position before it continues after the groups that it left out.
        position.end_event(end)
        return False

    def on_heartbeat_inside(self, event: bytes) -> None:
        """Handle a heartbeat inside a group whose end is not written yet.

        Raises DamagedStreamError if the source has sent more than was received.
        """
        position = self.position
        position.stay()
        end = HEAD.unpack_from(event)[2]
        if end and 0 < (end - position.before) % _WRAP < _WRAP // 2:
            raise self._stands_elsewhere(end)

    def _stands_elsewhere(self, end: int) -> DamagedStreamError:
        position = self.position
        return DamagedStreamError(
            f"The source reports the position {position.file}:{end}, but the events that it has"
            f" sent end at {position}: events are missing. {DAMAGED}."
        )

    def on_previous_gtids(self, event: bytes) -> None:
        """Read the GTIDs of all earlier files (MySQL)."""
        if self._gtids is None:
            self._gtids = MySQLGtids.decode(self.content(event))
        elif self._broken_off and isinstance(self._gtids, MySQLGtids):
            self._refuse_lacking(self._gtids.lacks(MySQLGtids.decode(self.content(event))))

    def on_gtid_list(self, event: bytes) -> None:
        """Read the GTIDs of all earlier files (MariaDB)."""
        if is_artificial(event):
            self.position.stay()
        elif self._gtids is None:
            self._gtids = MariaDBGtids.from_list_event(self.content(event))
        elif self._broken_off and isinstance(self._gtids, MariaDBGtids):
            self._refuse_lacking(self._gtids.lacks(listed_gtids(self.content(event))))

    def _refuse_lacking(self, gtid: MariaDBGtid | MySQLGtid | None) -> None:
        """Raise an error if a file without an end lacks a GTID that the next file lists."""
        self._broken_off = False
        if gtid is not None:
            raise DamagedStreamError(
                f"The file before {self.position.file} has no end event, and its last"
                f" transactions are missing: {gtid} was in it. {DAMAGED}."
            )

    def check_failed(self, event: bytes) -> None:
        """Raise ChecksumError, except for a format description of a file without checksums."""
        if event[4] != EventType.FORMAT_DESCRIPTION or read_checksum(event) is Checksum.CRC32:
            self._raise_checksum(event)

    def _raise_checksum(self, event: bytes) -> None:
        raise ChecksumError(
            f"The checksum of a {describe(event[4])} event does not match its bytes. {DAMAGED}."
        )


def is_artificial(event: bytes) -> bool:
    """Return whether the server made the event for this connection only."""
    return bool(FLAGS.unpack_from(event, 17)[0] & FLAG_ARTIFICIAL)
