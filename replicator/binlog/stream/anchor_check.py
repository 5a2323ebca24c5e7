"""Checks over a separate connection that an anchor event is still at its position."""

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
    """Reads the event at an anchor's position over ``connection``, which starts there.

    It ends before the stream itself begins, since the server accepts one stream for each server id.
    """

    def __init__(self, connection: BinlogConnection, anchor: AnchorEvent) -> None:
        self._connection = connection
        self._anchor = anchor

    def run(self) -> bool:
        """Return whether a transaction is still at its position.

        Returns False if only its file is known, or if the file was purged, so that there is no
        proof. Raises AnchorGoneError if there is another event or none; also the errors of
        `BinlogConnection.open` and `BinlogConnection.receive`.
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
        """End the check, from any thread; a `run` in progress raises StreamLostError."""
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
    """Return the beginning of a file as an anchor event; ``connection`` starts at this beginning.

    It identifies the binlog before anything was read. Raises the connection's errors.
    """
    try:
        events = _events(connection)
        return next(mark for event in events if (mark := first_anchor_of(file, event)))
    except DamagedStreamError as error:
        # Another read succeeds unless the file itself is damaged, which the reader reports.
        raise StreamLostError(str(error)) from error
    finally:
        connection.close()


def _events(connection: BinlogConnection) -> Iterator[bytes]:
    """Yield the events from the connection's start on; wait for new ones."""
    connection.open()
    packets = PacketBuffer()
    while True:
        packets.received(connection.receive(packets.room(), wait=True))
        while (event := packets.next_event()) is not None:
            yield event
        if packets.failure is not None:
            raise connection.failure(packets.failure.code, packets.failure.message)
