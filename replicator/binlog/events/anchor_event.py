"""Anchor events: events by which a binlog is recognised.

A file and an offset do not identify an event: after RESET MASTER, or on another server, another
event is there. So a position is saved together with an event before it, which is checked before
anything is read from the position.

An event keeps its time, type, server and content however it is sent (MySQL internals manual,
"Binlog Event header" and "FORMAT_DESCRIPTION_EVENT"). Its end position and its flags may change,
and a server that strips checksums changes its size. In a format description, a server clears the
time of creation in the body, but not the time in the header.
"""

from __future__ import annotations

from zlib import crc32

from replicator.binlog.errors import DAMAGED, BinlogError, DamagedStreamError
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
from replicator.binlog.events.structural_events import Checksum, read_checksum
from replicator.mysql.server.identity import AnchorEvent

FIRST_EVENT = 4
"""Offset of the first event of a file, its format description."""

MAX_OFFSET = 1 << 32
"""The protocol can't request an event at this offset or beyond."""

ROTATE_NAME = HEADER_SIZE + 8
"""Offset of the name in a rotation, after the offset in the next file."""
_TIME_AND_KIND = slice(0, 9)
_SIZE_OF_VERSIONS = 52
_SIZE_OF_GTID = 12


def fingerprint(event: bytes, cut: int | None) -> int:
    """Return a number that identifies an event. ``cut``: end of the event without its checksum."""
    body = event[HEADER_SIZE:cut]
    if event[4] == EventType.FORMAT_DESCRIPTION:
        body = body[:_SIZE_OF_VERSIONS]
    elif event[4] == EventType.MARIADB_GTID:
        # Sequence and domain. The flags and the group of commits differ from server to server.
        body = body[:_SIZE_OF_GTID]
    return crc32(body, crc32(event[_TIME_AND_KIND]))


def _check_sum(event: bytes, checksum: Checksum) -> None:
    if checksum is Checksum.CRC32 and crc32(event) != CRC_RESIDUE:
        raise DamagedStreamError(
            f"The checksum of a {describe(event[4])} event does not match its bytes. {DAMAGED}."
        )


def first_anchor_of(file: str, event: bytes) -> AnchorEvent | None:
    """Return the anchor event of a file; ``event`` is from a stream that starts at its beginning.

    Return None for the artificial rotation to this file that precedes the format description.
    Raises DamagedStreamError for any other event, BinlogError if the file's format is not known.
    """
    if len(event) < HEADER_SIZE:
        raise DamagedStreamError("An event ends inside its header.")
    kind = event[4]
    if kind == EventType.FORMAT_DESCRIPTION:
        _check_sum(event, read_checksum(event))
        return anchor_of(file, event)
    # A checksum may follow the name.
    if kind == EventType.ROTATE and event[ROTATE_NAME:].startswith(file.encode()):
        return None
    raise DamagedStreamError(
        f"The beginning of binlog file {file} was requested, but a {describe(kind)} event comes"
        f" before the format description. {DAMAGED}."
    )


def anchor_of(file: str, event: bytes) -> AnchorEvent | None:
    """Return a file's format description as its anchor event; None for another event.

    Raises BinlogError if the file's format is not known.
    """
    if event[4] != EventType.FORMAT_DESCRIPTION:
        return None
    cut = -CHECKSUM_SIZE if read_checksum(event) is Checksum.CRC32 else None
    created = TIMESTAMP.unpack_from(event)[0]
    return AnchorEvent(file, FIRST_EVENT, created, fingerprint(event, cut))


class AnchorSearch:
    """Searches for an anchor event in a stream that begins at it."""

    def __init__(self, anchor: AnchorEvent) -> None:
        self._anchor = anchor
        self._checksum: Checksum | None = None
        """The file's algorithm; None before its format description."""

    def found(self, event: bytes) -> bool | None:
        """Return whether the anchor event is at its position; None if a later event must decide.

        Raises BinlogError if the event has no complete header or the file's format is not known;
        DamagedStreamError if only damage in transit explains another event.
        """
        if len(event) < HEADER_SIZE:
            raise BinlogError("An event ends inside its header.")
        kind = event[4]
        if kind == EventType.FORMAT_DESCRIPTION:
            checksum = self._checksum = read_checksum(event)
            _check_sum(event, checksum)
            same = TIMESTAMP.unpack_from(event)[0] == self._anchor.created
            if same and self._anchor.offset != FIRST_EVENT:
                return None
            return same and self._is_it(event)
        if kind in (EventType.HEARTBEAT, EventType.HEARTBEAT_V2):
            # The source waits for more, so the binlog ends here.
            return False
        made_up = FLAGS.unpack_from(event, 17)[0] & FLAG_ARTIFICIAL
        if made_up or kind == EventType.MARIADB_START_ENCRYPTION:
            return None
        if self._checksum is None:
            raise DamagedStreamError(
                f"The {describe(kind)} event comes before the format description of the file."
                f" {DAMAGED}."
            )
        _check_sum(event, self._checksum)
        _, size, end = HEAD.unpack_from(event)
        if end and (end - size) % MAX_OFFSET != self._anchor.offset:
            raise DamagedStreamError(
                f"The {describe(kind)} event begins at {(end - size) % MAX_OFFSET}, where"
                f" {self._anchor.offset} was requested: events are missing. {DAMAGED}."
            )
        return self._is_it(event)

    def _is_it(self, event: bytes) -> bool:
        cut = -CHECKSUM_SIZE if self._checksum is Checksum.CRC32 else None
        return fingerprint(event, cut) == self._anchor.fingerprint
