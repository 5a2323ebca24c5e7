"""Saved state that must not be removed: without it, rows would be lost, deleted or doubled.

It consists of the shards whose rows wait, the keys that two shards have, and the positions up to
which rows are on the targets. A copy into an empty target replaces it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pymysql.err import MySQLError

from actors.errors.faults import FatalError, fault
from config.models import Meta, Task
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.meta.checkpoint import SavedWatermarks, saved_watermarks
from replicator.downstream.meta.held_shards import HeldShards
from replicator.downstream.meta.saved_state import SavedState, read_saved
from replicator.downstream.meta.tracked_keys import TRACKED_KEY_TABLE, tracked_targets
from replicator.downstream.rows.watermark_table import WATERMARK_TABLE
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import NO_SUCH_TABLE, error_code
from replicator.mysql.names import TableName
from replicator.watermark import NOTHING_APPLIED, boundary

_SHOWN = 5
"""Maximum number of shards or targets that a sentence names."""


async def refuse_needed(connection: Connection, task: Task) -> None:
    """Raise FatalError if the saved state of a task is still needed.

    Also raises DatabaseUnavailableError and the server's error.
    """
    saved = await read_saved(connection, task.meta_schema, task.name)
    if saved is None:
        return
    copies = task.task_mode != "incremental"
    states = await _target_states(connection, task, saved)
    if copies:
        states = {t: texts for t, texts in states.items() if await _has_rows(connection, t)}
    found = [text for target in sorted(states) for text in states[target]]
    if not copies:
        found += _task_states(saved)
    if found:
        raise _needed(task, found, sorted(states))


async def refuse_repeats(connection: Connection, task: Task) -> None:
    """Raise FatalError if the task file's starts are before rows that the targets have.

    Also raises DatabaseUnavailableError and the server's error.
    """
    saved = await read_saved(connection, task.meta_schema, task.name)
    if saved is None or task.task_mode != "incremental":
        return
    found = await _repeated_rows(connection, task, saved)
    if found:
        raise _needed(task, found, [])


async def _target_states(
    connection: Connection, task: Task, saved: SavedState
) -> dict[TableName, list[str]]:
    found: dict[TableName, list[str]] = {}
    for target, held in saved.held.items():
        if held.some or held.reason:
            found.setdefault(target, []).append(_held(target, held))
    try:
        table = TRACKED_KEY_TABLE.qualified(task.meta_schema, task.name)
        tracked = await tracked_targets(connection, table)
    except MySQLError as error:
        if error_code(error) not in NO_SUCH_TABLE:
            raise
        tracked = {}
    for target, keys in tracked.items():
        text = (
            f"{keys} {'keys' if keys > 1 else 'key'} of target {target} may be in two shards"
            " (moved.shared in the log): without this, a DELETE of one row would remove the other"
        )
        found.setdefault(target, []).append(text)
    return found


def _held(target: TableName, held: HeldShards) -> str:
    if held.reason:
        return f"rows of target {target} wait: {held.reason}"
    waiting = "all shards" if held.all_of else _listed(sorted(held.shards))
    return f"rows of {waiting} wait for a schema change of target {target}"


def _task_states(saved: SavedState) -> Iterator[str]:
    for source in saved.sources:
        if source.open_items and not saved.held:
            yield f"{source.open_items} schema changes of source {source.source} are open"
    if saved.copy is not None and not saved.copy.done:
        yield "the full copy has not finished"
    elif saved.copy is not None and saved.copy.deferred:
        yield f"{saved.copy.deferred} shards are not copied yet"


async def _repeated_rows(connection: Connection, task: Task, saved: SavedState) -> list[str]:
    """Return, by source, that the task file's start is before rows that are on a target."""
    table = WATERMARK_TABLE.qualified(task.meta_schema, task.name)
    positions = {source.source: source.position for source in saved.sources}
    found = []
    for instance in task.mysql_instances:
        source = instance.source_id
        if instance.meta is None or source not in positions:
            continue
        applied = await saved_watermarks(connection, table, source)
        repeated = repeated_targets(instance.meta, applied)
        repeated = [target for target in repeated if await _has_rows(connection, target)]
        if repeated:
            last = max(applied.high[target].transaction for target in repeated)
            position = BinlogPosition.parse(positions[source]).with_key(last)
            found.append(
                f"the rows of source {source} up to the transaction at {position} are on target"
                f" {_listed([str(target) for target in repeated])}, and its `meta:` in the task"
                " file begins before the end of that: they would be written again"
            )
    return found


def repeated_targets(start: Meta, applied: SavedWatermarks) -> list[TableName]:
    """Return the targets whose rows are read again from this start of a source.

    A GTID set or a time can't be compared with positions. For such a start, these are all targets
    ahead of the source's saved position, as after a kill.
    """
    if not start.binlog_name:
        low = applied.low
        ahead = {t for t, high in applied.high.items() if high > low.get(t, NOTHING_APPLIED)}
    else:
        begin = boundary(BinlogPosition(start.binlog_name, start.binlog_pos).key)
        ahead = {target for target, high in applied.high.items() if high.place > begin}
    return sorted(ahead)


async def _has_rows(connection: Connection, target: TableName) -> bool:
    try:
        return bool(await connection.fetch(f"SELECT 1 FROM {target.quoted} LIMIT 1"))
    except MySQLError as error:
        if error_code(error) not in NO_SUCH_TABLE:
            raise
        return False


def _needed(task: Task, found: list[str], targets: list[TableName]) -> FatalError:
    statements = "; ".join(f"TRUNCATE TABLE {target.quoted}" for target in targets[:_SHOWN])
    return fault(
        "task.state-needed",
        task=task.name,
        reasons="; ".join(found),
        statements=f" ({statements})" if statements else "",
        meta_schema=task.meta_schema,
    )


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
