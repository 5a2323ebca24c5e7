"""Recognising landmarks: events that must still stand where they stood.

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

from replicator.binlog.errors import BinlogError, ChecksumError, DamagedStreamError
from replicator.binlog.events import (
    CHECKSUM_SIZE,
    FLAG_ARTIFICIAL,
    FLAGS,
    HEADER_SIZE,
    TIMESTAMP,
    EventType,
)
from replicator.binlog.headers import Checksum, read_checksum
from replicator.mysql.identity import Landmark

FIRST_EVENT = 4
"""Where the first event of a file stands, its format description."""

MAX_OFFSET = 1 << 32
"""The protocol can't ask for what stands here or behind."""

ROTATE_NAME = HEADER_SIZE + 8
"""Where the name stands in a rotation, behind the offset in the next file."""
CRC_RESIDUE = 0x2144DF1C
"""The CRC32 of anything that ends with its own CRC32, little-endian."""
_TIME_AND_KIND = slice(0, 9)
_SIZE_OF_VERSIONS = 52


def fingerprint(event: bytes, cut: int | None) -> int:
    """What an event is known by. ``cut``: where to end a slice so that its checksum is left out."""
    body = event[HEADER_SIZE:cut]
    if event[4] == EventType.FORMAT_DESCRIPTION:
        body = body[:_SIZE_OF_VERSIONS]
    return crc32(body, crc32(event[_TIME_AND_KIND]))


def check_sum(event: bytes, checksum: Checksum) -> None:
    """Raise ChecksumError where an event has a checksum, and it is another event's."""
    if checksum is Checksum.CRC32 and crc32(event) != CRC_RESIDUE:
        raise ChecksumError(
            "The event by which a binlog file is known does not match its checksum: it was damaged"
            " on its way, or in the file."
        )


def first_landmark_of(file: str, event: bytes) -> Landmark | None:
    """The landmark of a file, from the events that a stream from its beginning starts with.

    None for what comes before the format description: a rotation, made up, to this file. Raises
    DamagedStreamError for anything else, BinlogError where the file's format is not known.
    """
    if len(event) < HEADER_SIZE:
        raise DamagedStreamError("An event ends inside its header.")
    kind = event[4]
    if kind == EventType.FORMAT_DESCRIPTION:
        check_sum(event, read_checksum(event))
        return landmark_of(file, event)
    # Its name may have a checksum behind it.
    if kind == EventType.ROTATE and event[ROTATE_NAME:].startswith(file.encode()):
        return None
    raise DamagedStreamError(
        f"The beginning of binlog file {file} was asked for, and an event of type {kind} comes"
        " before the format description: what came was damaged on its way."
    )


def landmark_of(file: str, event: bytes) -> Landmark | None:
    """The landmark that a file's format description is; None for another event.

    Raises BinlogError where the file's format is not known.
    """
    if event[4] != EventType.FORMAT_DESCRIPTION:
        return None
    cut = -CHECKSUM_SIZE if read_checksum(event) is Checksum.CRC32 else None
    created = TIMESTAMP.unpack_from(event)[0]
    return Landmark(file, FIRST_EVENT, created, fingerprint(event, cut))


class LandmarkSearch:
    """Looks for a landmark in a stream that begins at it."""

    def __init__(self, landmark: Landmark) -> None:
        self._landmark = landmark
        self._checksum = Checksum.NONE

    def found(self, event: bytes) -> bool | None:
        """Whether the landmark is there; None as long as only a later event can tell.

        Raises BinlogError for an event without a whole header, and where the file's format is not
        known.
        """
        if len(event) < HEADER_SIZE:
            raise BinlogError("An event ends inside its header.")
        kind = event[4]
        if kind == EventType.FORMAT_DESCRIPTION:
            self._checksum = read_checksum(event)
            check_sum(event, self._checksum)
            same = TIMESTAMP.unpack_from(event)[0] == self._landmark.created
            if same and self._landmark.offset != FIRST_EVENT:
                return None
            return same and self._is_it(event)
        if kind in (EventType.HEARTBEAT, EventType.HEARTBEAT_V2):
            # The source waits for more: nothing stands there.
            return False
        made_up = FLAGS.unpack_from(event, 17)[0] & FLAG_ARTIFICIAL
        if made_up or kind == EventType.MARIADB_START_ENCRYPTION:
            return None
        return self._is_it(event)

    def _is_it(self, event: bytes) -> bool:
        check_sum(event, self._checksum)
        cut = -CHECKSUM_SIZE if self._checksum is Checksum.CRC32 else None
        return fingerprint(event, cut) == self._landmark.fingerprint
