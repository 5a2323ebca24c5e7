"""Checks whether a source's binlog can be followed, by following it rather than by privileges.

MariaDB 10.5 split and renamed the privileges that MySQL has, so their names are not reliable.
"""

from __future__ import annotations

import random
import struct
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

import anyio.to_thread
import pymysql.err
from pymysql.constants import ER

from replicator.binlog.events.event_header import EventType
from replicator.binlog.positions.position import BinlogPosition
from replicator.checks.checked_task import SourceToCheck
from replicator.checks.connecting import account_of
from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.supported_servers import parse_version
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.connection.blocking_connection import connect
from replicator.mysql.errors import error_code
from replicator.mysql.names import TableName, folded
from replicator.mysql.server.binlog_end import binlog_end
from replicator.mysql.server.identity import folds_names
from replicator.mysql.server.statement_aliases import SHOW_REPLICAS, fetch_understood

_POSITION_REFUSED = frozenset(
    {ER.MASTER_FATAL_ERROR_READING_BINLOG, ER.ERROR_WHEN_EXECUTING_COMMAND}
)
_FIRST_OFFSET = 4
"""Offset of the first event of a binlog file, after its magic number."""


async def check_replication(source: SourceToCheck, connection: Connection) -> list[CheckResult]:
    """Query the current position and read the binlog from there."""
    place = CheckedPart(source.source_id)
    grant = (await account_of(connection)).grant_everywhere("REPLICATION CLIENT, REPLICATION SLAVE")
    try:
        end = await binlog_end(connection)
    except pymysql.err.MySQLError as error:
        return [
            place.failed(
                "replication_privilege",
                f"the source does not report its binlog position: {error.args[-1]}",
                grant,
            )
        ]
    assert end is not None, "check_binlog_settings has seen that there is a binlog"
    position = BinlogPosition(end.file, end.offset)
    try:
        await anyio.to_thread.run_sync(partial(try_dump, source.address, position))
    except (pymysql.err.MySQLError, OSError) as error:
        return [
            place.failed(
                "replication_privilege",
                f"the account can't read the binlog: {error.args[-1] if error.args else error}",
                grant,
            )
        ]
    return [place.passed("replication_privilege", f"the binlog was read at {position}")]


async def check_binlog_databases(
    source: SourceToCheck, connection: Connection, tables: Sequence[TableName]
) -> list[CheckResult]:
    """Check whether binlog-do-db or binlog-ignore-db keep a replicated schema out of the binlog."""
    try:
        end = await binlog_end(connection)
    except pymysql.err.MySQLError:
        return []  # reported by check_replication
    assert end is not None, "check_binlog_settings has seen that there is a binlog"
    schemas = {name.schema for name in tables}
    ignored = end.ignored
    if await folds_names(connection):
        # For these options, MySQL compares names without case, and MariaDB with it.
        ignored |= frozenset(map(folded, ignored))
    missing = sorted((schemas - end.only if end.only else set()) | schemas & ignored)
    if not missing:
        return []
    return [
        CheckedPart(source.source_id).failed(
            "binlog_db",
            f"the source leaves {', '.join(missing)} out of its binlog (binlog-do-db, "
            "binlog-ignore-db)",
            "Remove binlog-do-db and binlog-ignore-db from the server's my.cnf and restart it",
        )
    ]


async def check_server_id_free(
    source: SourceToCheck, connection: Connection, own_id: int
) -> list[CheckResult]:
    """Check whether the id of our reader belongs to the source or to another replica."""
    place = CheckedPart(source.source_id)
    wanted = source.server_id
    way_out = (
        f"Set another 'server-id:' for the source {source.source_id!r} in the task file, "
        f"for example {wanted % 4_000_000_000 + 1001}"
    )
    if wanted == own_id:
        return [place.failed("server_id", f"server-id {wanted} is the source's own", way_out)]
    try:
        replicas = await fetch_understood(connection, SHOW_REPLICAS)
    except pymysql.err.MySQLError as error:
        return [
            place.warning(
                "server_id",
                f"the check can't see whether server-id {wanted} is free: {error.args[-1]}",
                (await account_of(connection)).grant_everywhere(
                    await _right_to_see_replicas(connection)
                ),
            )
        ]
    host = next((str(row[1]) for row in replicas if int(row[0]) == wanted), None)
    if host is None:
        return [place.passed("server_id", f"server-id {wanted} is free at the source")]
    if host == source.registered_as and source.read_here:
        return [place.passed("server_id", f"server-id {wanted} is that of this task's reader")]
    if host == source.registered_as:
        return [
            place.warning(
                "server_id",
                f"server-id {wanted} is in use by a reader named {host!r}: this task runs, or "
                "ended a moment ago, or another task has the same id",
                f"If this task is not running: {way_out}",
            )
        ]
    return [
        place.failed(
            "server_id",
            f"server-id {wanted} is in use by the replica {host or '(no name)'!r}: the source "
            "would cut the two off in turn",
            way_out,
        )
    ]


async def _right_to_see_replicas(connection: Connection) -> str:
    """Return MariaDB's separate privilege since 10.5 (KB, "GRANT", "Replication Privileges")."""
    version = parse_version(str((await connection.fetch("SELECT VERSION()"))[0][0]))
    own = version is not None and version.product == "MariaDB" and version.number >= (10, 5)
    return "REPLICATION MASTER ADMIN" if own else "REPLICATION SLAVE"


async def check_start(
    source: SourceToCheck, connection: Connection, version: str
) -> list[CheckResult]:
    """Check whether the position from which the task starts still exists."""
    if source.start is None:
        return []
    place = CheckedPart(source.source_id)
    parsed = parse_version(version)
    mariadb = parsed is not None and parsed.product == "MariaDB"
    if source.start.gtid and not mariadb:
        return [await _mysql_gtid(source, place, connection)]
    binlog = source.start.binlog
    position = BinlogPosition(binlog.file, max(binlog.offset, _FIRST_OFFSET))
    gtid = source.start.gtid
    try:
        await anyio.to_thread.run_sync(
            partial(try_dump, source.address, None if gtid else position, gtid)
        )
    except (pymysql.err.MySQLError, OSError) as error:
        if error_code(error) not in _POSITION_REFUSED:
            return [
                place.warning(
                    "meta_position",
                    "the check can't see whether the source has its binlog from "
                    f"{gtid or position}: {error.args[-1] if error.args else error}",
                    f"{(await account_of(connection)).grant_everywhere('REPLICATION SLAVE')} Where"
                    " that is given, look at the server's error log and run the check again",
                )
            ]
        return [
            place.failed(
                "meta_position",
                f"the source does not have its binlog from {gtid or position}: {error.args[-1]}; "
                f"it has {await _files(connection)}",
                *_purged_remedies(source),
            )
        ]
    return [place.passed("meta_position", f"the source has its binlog from {gtid or position}")]


def _purged_remedies(source: SourceToCheck) -> tuple[str, ...]:
    """Return the remedies for a start whose binlog is gone. None of them leaves out changes."""
    if source.followed:
        return (
            "Restore the purged binlog files at the source, then start the task again",
            "Otherwise the changes since then are lost to the task: empty all targets of the task,"
            " set task-mode: all, 'replicator remove', then 'replicator run'",
        )
    return (
        "If 'meta:' of this source has a mistake: name the position up to which the targets have"
        " the rows of the source. A later position would leave out the changes in between"
        " without a message",
        "If the binlog was purged, these changes are lost to the task: empty the targets, and start"
        " over with task-mode: all and 'replicator run --remove-meta'",
    )


async def _mysql_gtid(
    source: SourceToCheck, place: CheckedPart, connection: Connection
) -> CheckResult:
    assert source.start is not None
    gtid = source.start.gtid
    try:
        rows = await connection.fetch(
            "SELECT GTID_SUBSET(@@GLOBAL.gtid_purged, %s), @@GLOBAL.gtid_mode,"
            " @@GLOBAL.gtid_purged",
            (gtid,),
        )
    except pymysql.err.MySQLError as error:
        return place.failed(
            "meta_position",
            f"binlog-gtid {gtid!r} is not usable: {error.args[-1]}",
            "Write it as the source does: SELECT @@GLOBAL.gtid_executed;",
        )
    complete, mode, purged = rows[0]
    if str(mode).upper() != "ON":
        return place.failed(
            "meta_position",
            f"the start is a GTID set, and the source's gtid_mode is {mode}",
            "Give binlog-name and binlog-pos under 'meta:', or turn gtid_mode on at the source",
        )
    if not complete:
        return place.failed(
            "meta_position",
            f"the source has purged transactions that come after {gtid}: {purged}",
            *_purged_remedies(source),
        )
    return place.passed("meta_position", f"the source has its binlog from {gtid}")


async def _files(connection: Connection) -> str:
    try:
        rows = await connection.fetch("SHOW BINARY LOGS")
    except pymysql.err.MySQLError as error:
        return f"files that cannot be listed ({error.args[-1]})"
    if not rows:
        return "no binlog"
    return f"{rows[0][0]} to {rows[-1][0]} (up to {rows[-1][1]})"


_COM_BINLOG_DUMP = 0x12
_NON_BLOCK = 1
_READ_SECONDS = 30
_END_OF_STREAM = 0xFE
_HEADS = frozenset(
    {
        EventType.ROTATE,
        EventType.FORMAT_DESCRIPTION,
        EventType.HEARTBEAT,
        EventType.MARIADB_GTID_LIST,
    }
)
"""Types of the events before the first event of the position."""
_MAX_HEADS = 1000


def try_dump(
    address: DatabaseAddress, position: BinlogPosition | None, mariadb_gtid: str = ""
) -> None:
    """Read from the binlog until the first event of the position, or its end.

    Source of the packets: MySQL internals manual, "Replication Protocol" (COM_BINLOG_DUMP; with
    flag 0x01 the server ends the stream instead of waiting for new events). MariaDB reads a GTID
    position from ``@slave_connect_state`` (MariaDB KB, "Global Transaction ID").

    Without a position, the stream starts at ``mariadb_gtid``. It has a random server id, since a
    server ends the stream of another replica with the same id. Raises pymysql's errors,
    ER_MASTER_FATAL_ERROR_READING_BINLOG if the position does not exist,
    ER_SPECIFIC_ACCESS_DENIED_ERROR or ER_ACCESS_DENIED_ERROR if the privilege is missing.
    """
    connection: Any = connect(address, timeout=_READ_SECONDS)
    try:
        _negotiate(connection, mariadb_gtid)
        file, offset = (position.file, position.offset) if position else ("", 4)
        # A name that is probably unused, not a secret.
        server_id = random.randrange(1 << 31, 1 << 32)  # nosec B311
        body = struct.pack("<IHI", min(offset, (1 << 32) - 1), _NON_BLOCK, server_id)
        connection._execute_command(_COM_BINLOG_DUMP, body + file.encode())
        for _ in range(_MAX_HEADS):
            # An error packet raises; others begin with a status byte, then the event's header:
            # timestamp (4 bytes), then its type.
            packet = connection._read_packet().get_all_data()
            if packet[0] == _END_OF_STREAM or packet[5] not in _HEADS:
                return
    finally:
        connection._force_close()


def _negotiate(connection: Any, mariadb_gtid: str) -> None:
    settings: list[tuple[str, object]] = [
        ("mariadb_slave_capability", 4),
        ("slave_uuid", str(uuid.uuid4())),
        ("master_heartbeat_period", 5_000_000_000),
    ]
    if mariadb_gtid:
        settings.append(("slave_connect_state", mariadb_gtid))
    with connection.cursor() as cursor:
        cursor.execute("SET @master_binlog_checksum = @@global.binlog_checksum")
        for name, value in settings:
            cursor.execute(f"SET @{name} = %s", (value,))
