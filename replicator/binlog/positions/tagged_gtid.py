"""Tags of GTIDs (MySQL 8.3 and later) in events and in GTID sets.

Sources of the formats: MySQL's readme of its library mysql::serialization (messages, integers of
variable length); its comments on Gtid_event, whose fields are numbered in their order there, and on
Gtid_set::encode.
"""

from __future__ import annotations

import re
from typing import Final

from replicator.binlog.errors import BinlogError, UnsupportedEventError

TAG: Final = re.compile("[a-z_][a-z0-9_]{0,31}")
"""A tag as the server keeps it: folded to lower case."""

_ONES: Final = bytes((~byte & byte + 1).bit_length() - 1 for byte in range(256))
"""The number of one bits at the low end of each byte."""
_VERSION: Final = 1
_UUID_SIZE: Final = 16
_FLAGS, _UUID, _NUMBER, _TAG = range(4)
_FIELDS: Final = 12
"""The number of known fields; the fields after the tag are not used here."""


class PackedReader:
    """Reads the integers and texts of a message, one after the other.

    All methods raise BinlogError if the bytes end too early.
    """

    def __init__(self, data: bytes, at: int = 0) -> None:
        self._data = data
        self.at = at

    def number(self) -> int:
        """Read an unsigned integer.

        The low one bits of its first byte are the number of further bytes.
        """
        first = self._byte()
        more = _ONES[first]
        if not more:
            self.at += 1
            return first >> 1
        # Eight one bits fill a byte, before the eight bytes of the number.
        skipped, shift = (1, 0) if more == 8 else (0, more + 1)
        taken = self.take(more + 1)
        return int.from_bytes(taken[skipped:], "little") >> shift

    def signed(self) -> int:
        """Read an integer whose lowest bit is its sign."""
        value = self.number()
        return -(value >> 1) - 1 if value & 1 else value >> 1

    def tag(self) -> str:
        """Read a tag after its length; "" means no tag. Raises BinlogError if it is not a tag."""
        name = self.take(self.number()).decode("latin-1")
        if name and not TAG.fullmatch(name):
            raise BinlogError(f"{name!r} can't be the tag of a GTID: the bytes are damaged.")
        return name

    def take(self, size: int) -> bytes:
        """Read ``size`` bytes."""
        taken = self._data[self.at : self.at + size]
        if len(taken) < size:
            raise BinlogError("A GTID event, or a GTID set, is too short.")
        self.at += size
        return taken

    def _byte(self) -> int:
        if self.at >= len(self._data):
            raise BinlogError("A GTID event, or a GTID set, is too short.")
        return self._data[self.at]


def packed_tag(tag: str) -> bytes:
    """Return a tag after its length, as `PackedReader.tag` reads it."""
    return bytes([len(tag) << 1]) + tag.encode()


def read_tagged(body: bytes) -> tuple[bytes, int, str]:
    """Return the UUID, number and tag of a GTID_TAGGED event, without its header and checksum.

    Raises UnsupportedEventError if the event is in a newer form that this program does not know,
    BinlogError if the bytes are damaged.
    """
    reader = PackedReader(body)
    version, size, needed = reader.number(), reader.number(), reader.number()
    if version != _VERSION or needed > _FIELDS:
        raise UnsupportedEventError(
            f"A GTID with a tag is in a newer form (version {version}, field {needed}) than this "
            "program knows. Use gtid_next without a tag on the source."
        )
    if size != len(body):
        raise BinlogError(f"A GTID event of {len(body)} bytes says that it has {size}.")
    _expect(reader, _FLAGS)
    reader.number()
    _expect(reader, _UUID)
    values = [reader.number() for _ in range(_UUID_SIZE)]
    if max(values) > 0xFF:
        raise BinlogError("A GTID event has no UUID where it should stand.")
    _expect(reader, _NUMBER)
    number = reader.signed()
    if number < 1:
        raise BinlogError(f"A GTID event has the number {number}.")
    _expect(reader, _TAG)
    return bytes(values), number, reader.tag()


def _expect(reader: PackedReader, field: int) -> None:
    found = reader.number()
    if found != field:
        raise BinlogError(f"A GTID event has field {found} where field {field} should stand.")
