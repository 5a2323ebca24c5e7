"""What one reading of a binlog gave, in a form that two of them can be compared in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from replicator.binlog.connection.dump_connection import BinlogConnection, BinlogSource
from replicator.binlog.connection.server_info import ServerInfo
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.segment import RouteSlot, Segment
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.binlog.stream.binlog_stream import BinlogStream
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.server.identity import AnchorEvent, ServerIdentity
from tests.fuzz.packets import HEADER
from tests.support.streams.row_columns import places, table_maps

HEARTBEAT = 0.1
SERVER_ID = 4242
USER, PASSWORD = "fuzz", "of the stream"
NOWHERE = BinlogPosition(".0", 0)


@dataclass(frozen=True, slots=True)
class Boundary:
    """A place that a task would save, and how much was handed on up to there.

    Its anchor event may be the group before it or the one behind it, if that has begun to come.
    """

    gtid: str
    prepared: tuple[BinlogPosition, ...]
    items: int
    anchor: AnchorEvent | None = field(default=None, compare=False)


@dataclass(slots=True)
class Reading:
    """Row events and statements in their order, and the boundaries by their places."""

    items: list[object] = field(default_factory=list)
    boundaries: dict[int, Boundary] = field(default_factory=dict)
    end: SourcePosition | None = None
    caught_up: bool = False

    @property
    def boundary(self) -> BinlogPosition:
        """The last one."""
        return NOWHERE if self.end is None else self.end.binlog

    def add(self, segment: Segment) -> None:
        """Take in the next segment."""
        for rows in segment.rows.values():
            for table, event, place in zip(
                table_maps(rows), rows.split(), places(rows), strict=True
            ):
                self.items.append((str(table), event, place))
        if segment.statement is not None:
            self.items.append(segment.statement)
        self.caught_up = segment.caught_up
        if segment.complete:
            self.end = segment.end
            end = segment.end
            found = Boundary(end.gtid, end.prepared, len(self.items), end.anchor)
            self.boundaries[end.binlog.key] = found


@contextmanager
def reader(
    port: int,
    start: SourcePosition | GtidStart,
    schema: str,
    expected: ServerIdentity | None,
    *,
    timeout: float,
    packetwise: bool = False,
) -> Iterator[BinlogStream]:
    """An open stream of all tables of a schema; ``timeout`` in seconds, for a silent server."""
    kind = PacketwiseStream if packetwise else BinlogStream
    with closing(
        kind(
            BinlogSource(
                DatabaseAddress("127.0.0.1", port, USER, PASSWORD),
                server_id=SERVER_ID,
                heartbeat=HEARTBEAT,
                read_timeout=timeout,
                expected=expected,
            ),
            start,
            route=lambda name, *_: RouteSlot(1, 1) if name == schema else None,
            limits=SegmentLimits(),
        )
    ) as stream:
        stream.open()
        yield stream


class PacketwiseStream(BinlogStream):
    """Hands on a segment at each boundary, however much has come by then."""

    def open(self) -> ServerInfo:
        """As `BinlogStream.open`."""
        info = super().open()
        connection = self._connection
        self._cutter = _OnePacket(connection)
        # What the base class calls; its type is that of the connection's own method.
        connection.receive = self._cutter.receive  # type: ignore[method-assign]
        return info


class _OnePacket:
    """Receives no byte of a packet with those of the one before."""

    def __init__(self, connection: BinlogConnection) -> None:
        self._receive = connection.receive
        self._head = b""
        self._left = 0

    def receive(self, room: memoryview, *, wait: bool) -> int:
        if not self._left and not self._head and not wait:
            return 0
        count = self._receive(room[: self._left or HEADER - len(self._head)], wait=True)
        if self._left:
            self._left -= count
            return count
        self._head += bytes(room[:count])
        if len(self._head) == HEADER:
            self._left, self._head = int.from_bytes(self._head[:3], "little"), b""
        return count
