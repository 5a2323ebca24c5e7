"""Looking whether an anchor event still stands, on a connection of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql

from replicator.binlog.connection.dump_connection import BinlogConnection
from replicator.binlog.connection.framing import PacketBuffer
from replicator.binlog.errors import (
    AnchorGoneError,
    DamagedStreamError,
    PurgedError,
    StreamLostError,
)
from replicator.binlog.events.anchor_event import FIRST_EVENT, AnchorSearch, first_anchor_of
from replicator.mysql.server.identity import AnchorEvent


class AnchorCheck:
    """Reads the event at an anchor event. ``connection`` starts there, and is used up by this.

    It ends before the stream itself begins: the server takes one stream for each server id.
    """

    def __init__(self, connection: BinlogConnection, anchor: AnchorEvent) -> None:
        self._connection = connection
        self._anchor = anchor

    def run(self) -> bool:
        """Return whether a transaction is still in its place; False if only its file is known,
        or if the file was purged, so that there is no proof.

        Raises AnchorGoneError where something else stands there, or nothing; besides, what
        `BinlogConnection.open` and `BinlogConnection.receive` raise.
        """
        try:
            found = self._look()
        except PurgedError as error:
            if self._is_purged():
                return False
            raise self._gone(str(error)) from error
        finally:
            self.close()
        if not found and self._connection.mistrust():
            raise StreamLostError(f"The relay has another event at {self._anchor}.")
        if not found:
            raise self._gone("something else stands there, or nothing.")
        return self._anchor.offset != FIRST_EVENT

    def close(self) -> None:
        """End it, from any thread; a `run` under way raises StreamLostError."""
        self._connection.close()

    def _look(self) -> bool:
        search = AnchorSearch(self._anchor)
        answers = map(search.found, _events(self._connection))
        return next(answer for answer in answers if answer is not None)

    def _is_purged(self) -> bool:
        try:
            files = self._connection.binlogs()
        except (pymysql.MySQLError, OSError) as error:
            raise StreamLostError(f"The list of binlogs can't be read: {error}") from error
        first = files[0][0].rpartition(".")[2] if files else ""
        return first.isdecimal() and int(first) > self._anchor.sequence

    def _gone(self, reason: str) -> AnchorGoneError:
        return AnchorGoneError(
            f"The event that was read at {self._anchor} is no longer there: {reason} The binlog"
            " was reset (RESET MASTER, RESET BINARY LOGS AND GTIDS), or has lost its end in a"
            " crash, or another server answers.",
            read=self._anchor.offset != FIRST_EVENT,
        )


def first_anchor(connection: BinlogConnection, file: str) -> AnchorEvent:
    """The anchor event that the beginning of a file is; ``connection`` starts there.

    It knows a place of the file before anything was read. Raises what the connection raises.
    """
    try:
        events = _events(connection)
        return next(mark for event in events if (mark := first_anchor_of(file, event)))
    except DamagedStreamError as error:
        # Read once more, it is sound, unless the file itself is damaged, which the reader tells.
        raise StreamLostError(str(error)) from error
    finally:
        connection.close()


def _events(connection: BinlogConnection) -> Iterator[bytes]:
    """The events from where a connection starts; waits for those to come."""
    connection.open()
    packets = PacketBuffer()
    while True:
        packets.received(connection.receive(packets.room(), wait=True))
        while (event := packets.next_event()) is not None:
            yield event
        if packets.failure is not None:
            raise connection.failure(packets.failure.code, packets.failure.message)
