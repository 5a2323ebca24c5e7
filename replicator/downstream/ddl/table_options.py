"""Storage options of a target: set once, if the server accepts them.

No shard waits for an option, and no row depends on it. So there is no record of it, and an option
that the server refuses is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pymysql.err
import structlog

from replicator.ddl.model.table import TableOption
from replicator.downstream.ddl.ddl_session import reach_all_nodes
from replicator.mysql.connection.asyncio_connection import Connection, is_unavailable
from replicator.mysql.errors import error_code
from replicator.mysql.names import TableName
from replicator.schema.structure.inspection import read_table

if TYPE_CHECKING:
    from replicator.schema.structure.structure import Table

LOCK_SECONDS = 30
"""Seconds that an option waits for sessions that use the table."""

PATIENCE = 7 * 24 * 3600.0
"""Seconds that the rebuild of a large table may take before the connection is given up."""

_USUAL = frozenset({"DEFAULT", "0", "", "N", "NO", "NONE"})
"""Values that SHOW CREATE TABLE leaves out."""

_SWITCHES = frozenset({"PACK_KEYS", "STATS_AUTO_RECALC", "STATS_PERSISTENT"})
"""Options for which 0 differs from the default."""

_SECURITY = frozenset({"ENCRYPTED", "ENCRYPTION"})


async def set_options(
    session: Connection, target: TableName, options: Sequence[TableOption], *, if_empty: bool
) -> None:
    """Give a target the options that it lacks, all at once or, if that is refused, one by one.

    With ``if_empty``, nothing is set on a table with rows, which its server would rebuild. A
    missing table is left alone. Raises DatabaseUnavailableError.
    """
    table = await read_table(session, target) if options else None
    lacking = [option for option in options if table is not None and _lacks(table, option)]
    if not lacking:
        return
    if if_empty and await session.fetch(f"SELECT 1 FROM {target.quoted} LIMIT 1"):
        for option in lacking:
            _report_left_out(target, option, "the target has rows: it would be rebuilt")
        return
    await reach_all_nodes(session)
    await session.execute("SET SESSION lock_wait_timeout = %s", (LOCK_SECONDS,))
    if len(lacking) > 1 and not await _refusal(session, target, lacking):
        return
    for option in lacking:
        if reason := await _refusal(session, target, [option]):
            _report_left_out(target, option, reason)


async def _refusal(session: Connection, target: TableName, options: Sequence[TableOption]) -> str:
    """Set options, and return the server's error, if any."""
    text = ", ".join(f"{option.name}={option.value}" for option in options)
    try:
        await session.execute(f"ALTER TABLE {target.quoted} {text}", patience=PATIENCE)
    except pymysql.err.MySQLError as error:
        if is_unavailable(error):
            raise
        return f"{error.args[-1]} ({error_code(error)})"
    structlog.get_logger().info("ddl.option-set", target=str(target), option=text)
    return ""


def _lacks(table: Table, option: TableOption) -> bool:
    shown = _plain(table.definition.option(option.name))
    wanted = _plain(option.value)
    if shown == wanted:
        return False
    return bool(shown) or wanted not in _USUAL or (wanted == "0" and option.name in _SWITCHES)


def _plain(value: str) -> str:
    return value.strip("'\"`").upper()


def _report_left_out(target: TableName, option: TableOption, reason: str) -> None:
    log = structlog.get_logger().bind(
        target=str(target), option=f"{option.name}={option.value}", reason=reason
    )
    if option.name in _SECURITY and _plain(option.value) not in _USUAL:
        log.warning("ddl.encryption-left-out")
    else:
        log.info("ddl.option-left-out")
