"""Queries to a source during its copy, which are retried while a table is locked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread
import structlog
from attrs import define, field
from pymysql.constants import ER
from pymysql.err import MySQLError

from actors.copying.jobs import other_server_in_copy
from actors.copying.progress import CopyProgress
from replicator.binlog.errors import OtherServerError
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.errors import error_code, is_unavailable
from replicator.mysql.server.identity import ServerIdentity
from replicator.pipeline.copy.source_stream import SourceStream

Result = TypeVar("Result")

LOCK_PAUSE = 5.0
"""Seconds before a query of a locked table is retried."""

log = structlog.get_logger()


@define(eq=False)
class RetryingStream:
    """One connection to a source, for one query at a time; it is opened on first use.

    ``server``: the server that must answer, if it is known.
    """

    _source: str
    _address: DatabaseAddress
    _server: ServerIdentity | None
    _progress: CopyProgress
    _stream: SourceStream | None = field(default=None, init=False)
    _lock: anyio.Lock = field(factory=anyio.Lock, init=False)

    def close(self) -> None:
        """Close the connection."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    async def run(self, work: Callable[[SourceStream], Result]) -> Result:
        """Query the source, even if a table is locked for long.

        Raises the server's error; FatalError if another server answers.
        """
        waits = False
        while True:
            try:
                async with self._lock:
                    found = await self._answer(work)
            except MySQLError as error:
                if error_code(error) != ER.LOCK_WAIT_TIMEOUT:
                    raise
            except OtherServerError as error:
                raise other_server_in_copy(self._source, str(error)) from error
            else:
                if waits:
                    self._progress.waiting = ""
                return found
            source = self._source
            waits = True
            self._progress.waiting = (
                f"{source}: a transaction that writes to a table, or a lock on it, has to end"
                " (XA RECOVER shows those that are prepared)"
            )
            log.warning("copy.waits-for-others", source=source)
            await anyio.sleep(LOCK_PAUSE)

    async def _answer(self, work: Callable[[SourceStream], Result]) -> Result:
        def run() -> Result:
            fresh = self._stream is None
            while True:
                if self._stream is None:
                    self._stream = SourceStream(self._address, self._server)
                try:
                    return work(self._stream)
                except MySQLError as error:
                    if not is_unavailable(error):
                        raise
                    self._stream.close()
                    self._stream = None
                    if fresh:
                        raise
                # The connection was idle while chunks were copied, and servers close idle ones.
                fresh = True

        return await anyio.to_thread.run_sync(run)
