"""Where a source's binlog stands at a time: files are bisected, one is walked through."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

from actors.faults import FatalError
from actors.reading.first_anchor import anchor_before
from actors.reading.gtid_lookup import look_up
from actors.task_setup import SourceSetup
from replicator.binlog.positions.position import BinlogPosition
from replicator.binlog.stream.gtid_positions import first_since
from replicator.mysql.connection.answers import understood
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.server.identity import ServerIdentity


async def position_at(
    setup: SourceSetup, upstream: Connection, server: ServerIdentity, moment: datetime
) -> BinlogPosition:
    """Where the first transaction begins that was written at ``moment`` or later; else the end.

    By the clock of the source, which counts whole seconds. Raises FatalError where the binlog does
    not reach back to then, or does not tell; BinlogError, DatabaseUnavailableError, the server's
    error.
    """
    wanted = int(moment.timestamp())
    rows = await upstream.fetch("SELECT UNIX_TIMESTAMP()")
    with understood("SELECT UNIX_TIMESTAMP()"):
        clock = int(rows[0][0])
    if wanted > clock:
        raise _no_start(setup, moment, f"it is only {_shown(clock)} by its clock", ())
    rows = await upstream.fetch("SHOW BINARY LOGS")
    with understood("SHOW BINARY LOGS"):
        files = [str(row[0]) for row in rows]
    file = await _file_before(setup, server, files, moment)
    found = await look_up(setup, server, upstream, partial(first_since, file=file, moment=wanted))
    if found is None:
        way = "name the place by `binlog-name` and `binlog-pos` of the instance's `meta`"
        raise _no_start(setup, moment, "its binlog does not show where transactions begin", (way,))
    return found


async def _file_before(
    setup: SourceSetup, server: ServerIdentity, files: list[str], moment: datetime
) -> str:
    """The newest file that was begun before a time; its transactions may be older, never newer."""
    wanted = int(moment.timestamp())
    begun = await _begun(setup, server, files[0], moment) if files else 0
    if not files or begun >= wanted:
        oldest = f"its oldest binlog file, {files[0]}, begins at {_shown(begun)}" if files else ""
        ways = (
            "name a later time, if the target has the rows from before",
            "copy the rows: `task-mode: all`",
        )
        raise _no_start(setup, moment, oldest or "it has no binlog", ways)
    first, last = 0, len(files)
    while last - first > 1:
        middle = (first + last) // 2
        if await _begun(setup, server, files[middle], moment) < wanted:
            first = middle
        else:
            last = middle
    return files[first]


async def _begun(setup: SourceSetup, server: ServerIdentity, file: str, moment: datetime) -> int:
    anchor = await anchor_before(setup, server, file)
    if anchor is None:
        way = "look at its log; or name the place by `binlog-name` of the instance's `meta`"
        raise _no_start(setup, moment, f"its binlog file {file} can't be read", (way,))
    return anchor.created


def _no_start(
    setup: SourceSetup, moment: datetime, why: str, remedies: tuple[str, ...]
) -> FatalError:
    return FatalError(
        "source.no-start",
        f"the task can't follow source {setup.source} from {moment:%Y-%m-%d %H:%M:%S} UTC on:"
        f" {why}",
        *(remedies or ("name an earlier time",)),
        where=f"source {setup.source}",
    )


def _shown(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
