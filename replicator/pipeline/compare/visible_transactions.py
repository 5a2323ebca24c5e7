"""Waits until queries to a source see the transactions in its binlog.

A server writes a transaction to its binlog before other sessions see its rows. If replication is
semi-synchronous, it waits for a replica in between, for 10 seconds by default. The task reads such
a transaction and applies it, so the target has rows that a query of the shard does not return yet.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import closing, suppress

from pymysql.err import MySQLError

from replicator.binlog.positions.position import BinlogPosition
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.server.binlog_end import blocking_binlog_end
from replicator.pipeline.copy.source_stream import SourceStream

_PAUSE = 0.01


def shows_binlog(stream: SourceStream, seconds: float) -> bool:
    """Return whether queries to a server see all transactions that its binlog has now.

    Waits at most ``seconds`` for them. MariaDB reports the position of a snapshot, and MySQL the
    GTIDs of transactions that have not ended. MySQL without GTIDs reports neither, so the answer is
    always True. Raises the driver's error.
    """
    end = blocking_binlog_end(stream)
    if end is None:
        return True
    until = time.monotonic() + seconds
    key = BinlogPosition(end.file, end.offset).key
    unended: frozenset[str] | None = None
    while True:
        place = stream.begin_snapshot()
        stream.run(b"COMMIT")
        if place is not None:
            shown = BinlogPosition(place.file, place.offset).key >= key
        else:
            owned = _owned_gtids(stream)
            unended = owned if unended is None else unended & owned
            shown = not unended
        if shown or time.monotonic() > until:
            return shown
        time.sleep(_PAUSE)


def hidden_sources(addresses: Iterable[tuple[str, DatabaseAddress]]) -> set[str]:
    """Return the sources whose queries do not see all of their binlogs at once.

    ``addresses``: the servers by source. A server that can't be reached is left out: nobody can
    read its rows either. Blocks.
    """
    hidden = set()
    for source, address in addresses:
        with suppress(MySQLError), closing(SourceStream(address)) as stream:
            if not shows_binlog(stream, 1.0):
                hidden.add(source)
    return hidden


def _owned_gtids(stream: SourceStream) -> frozenset[str]:
    """Return the GTIDs of transactions that have not ended (``uuid:7#12:8#13,…``)."""
    ((value,),) = stream.rows(b"SELECT @@GLOBAL.gtid_owned")
    text = value.decode() if isinstance(value, bytes) else str(value or "")
    found: set[str] = set()
    for of_server in text.replace("\n", "").split(","):
        server, *transactions = of_server.strip().split(":")
        found.update(f"{server}:{each}" for each in transactions if "#" in each)
    return frozenset(found)
