"""Recognising anchor events: events that must still stand where they stood.

A file and an offset mean nothing by themselves: after RESET MASTER, or on another server, something
else stands there. So a position is kept together with an event before it, which is looked at again
before anything is read from the position.

What stays the same of an event however it is sent (MySQL internals manual, "Binlog Event header"
and "FORMAT_DESCRIPTION_EVENT"): time, type, server and content. Its end position and its flags do
not, and a server that strips checksums changes its size; of a format description it clears the
time of creation in the body, not the time in the header.
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
"""Where the first event of a file stands, its format description."""

MAX_OFFSET = 1 << 32
"""The protocol can't ask for what stands here or behind."""

ROTATE_NAME = HEADER_SIZE + 8
"""Where the name stands in a rotation, behind the offset in the next file."""
_TIME_AND_KIND = slice(0, 9)
_SIZE_OF_VERSIONS = 52
_SIZE_OF_GTID = 12


def fingerprint(event: bytes, cut: int | None) -> int:
    """What an event is known by. ``cut``: where to end a slice so that its checksum is left out."""
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
    """The anchor event of a file, from the events that a stream from its beginning starts with.

    None for what comes before the format description: a rotation, made up, to this file. Raises
    DamagedStreamError for anything else, BinlogError where the file's format is not known.
    """
    if len(event) < HEADER_SIZE:
        raise DamagedStreamError("An event ends inside its header.")
    kind = event[4]
    if kind == EventType.FORMAT_DESCRIPTION:
        _check_sum(event, read_checksum(event))
        return anchor_of(file, event)
    # Its name may have a checksum behind it.
    if kind == EventType.ROTATE and event[ROTATE_NAME:].startswith(file.encode()):
        return None
    raise DamagedStreamError(
        f"The beginning of binlog file {file} was requested, but a {describe(kind)} event comes"
        f" before the format description. {DAMAGED}."
    )


def anchor_of(file: str, event: bytes) -> AnchorEvent | None:
    """The anchor event that a file's format description is; None for another event.

    Raises BinlogError where the file's format is not known.
    """
    if event[4] != EventType.FORMAT_DESCRIPTION:
        return None
    cut = -CHECKSUM_SIZE if read_checksum(event) is Checksum.CRC32 else None
    created = TIMESTAMP.unpack_from(event)[0]
    return AnchorEvent(file, FIRST_EVENT, created, fingerprint(event, cut))


class AnchorSearch:
    """Looks for an anchor event in a stream that begins at it."""

    def __init__(self, anchor: AnchorEvent) -> None:
        self._anchor = anchor
        self._checksum: Checksum | None = None
        """Of the file; None before it has said so."""

    def found(self, event: bytes) -> bool | None:
        """Whether the anchor event is there; None as long as only a later event can tell.

        Raises BinlogError for an event without a whole header, and where the file's format is not
        known; DamagedStreamError where something else stands there only by a damage on its way.
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
            # The source waits for more: nothing stands there.
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
