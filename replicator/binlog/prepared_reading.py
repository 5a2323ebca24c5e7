"""Reading XA transactions that were prepared before the position to go on from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from replicator.binlog.assembler import SegmentAssembler
from replicator.binlog.connection import BinlogConnection
from replicator.binlog.errors import BinlogError, PurgedError, StreamLostError
from replicator.binlog.framing import PacketBuffer
from replicator.binlog.position import BinlogPosition, SourcePosition
from replicator.binlog.prepared import Prepared, PreparedTransactions
from replicator.binlog.segment_builder import SegmentLimits
from replicator.binlog.xa import Xid

_ONE_GROUP = SegmentLimits(target_bytes=1)


class _Connect(Protocol):
    def __call__(self, start: SourcePosition, *, bare: bool) -> BinlogConnection: ...


class PreparedReading:
    """Reads the groups that begin at some places, each on a connection of its own.

    It ends before the stream itself begins: the server takes one stream for each server id.
    ``purged`` are the places whose files the server no longer has. Those transactions are not known
    then: if one is committed, that is an error where its outcome stands.
    """

    def __init__(self, connect: _Connect, places: Sequence[BinlogPosition]) -> None:
        self.purged: list[BinlogPosition] = []
        self._connect = connect
        self._places = places
        self._connection: BinlogConnection | None = None
        self._closed = False

    def run(self) -> list[tuple[Xid, Prepared]]:
        """Those that were found. Raises BinlogError, StreamLostError."""
        self.purged = []
        return [one for at in self._places for one in self._read(at)]

    def close(self) -> None:
        """End it, from any thread; a `run` under way raises StreamLostError."""
        self._closed = True
        if self._connection is not None:
            self._connection.close()

    def _read(self, at: BinlogPosition) -> Iterable[tuple[Xid, Prepared]]:
        self._connection = connection = self._connect(SourcePosition(at), bare=True)
        try:
            if self._closed:
                raise StreamLostError("The binlog stream is closed.")
            info, _ = connection.open()
            yield from _group(connection, at, checksums=info.checksum == "CRC32")
        except PurgedError:
            self.purged.append(at)
        finally:
            connection.close()


def _group(
    connection: BinlogConnection, at: BinlogPosition, *, checksums: bool
) -> Iterable[tuple[Xid, Prepared]]:
    packets = PacketBuffer()
    prepared = PreparedTransactions()
    assembler = SegmentAssembler(
        packets,
        SourcePosition(at),
        gtids=None,
        route=lambda _schema, _table, _types: None,
        limits=_ONE_GROUP,
        checksums=checksums,
        prepared=prepared,
        described=False,
    )
    while not assembler.run():
        if packets.failure is not None:
            raise connection.failure(packets.failure.code, packets.failure.message)
        packets.received(connection.receive(packets.room(), wait=True))
    if not prepared.places:
        raise BinlogError(f"No prepared XA transaction stands at {at}, where one was read before.")
    return prepared.items()
