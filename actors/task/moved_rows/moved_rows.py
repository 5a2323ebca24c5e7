"""When tracked keys are looked up in the shards of their target, and what follows.

What the target lacks is put back before anything runs
(`replicator.pipeline.moved_rows.moved_rows`); so while a task follows its sources, it begins anew
for it, as it does after a pause. Whether it has to, and which keys need not be noted any more, is
found out while it works (`actors.task.moved_rows.key_reconciliation`).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import anyio
import anyio.to_thread
import structlog
from pymysql.constants import ER
from pymysql.err import MySQLError

from actors.faults import TAKE_THE_ROW, FatalError, TransientError, of_target
from actors.refusals import locked_fault, refusal
from actors.task.moved_rows.key_reconciliation import (
    KeyReconciliation,
    NotYetError,
    UnreadableShardError,
    forget_readable,
    holder_of,
    key_columns,
    report_unreadable,
    shards_of,
    unknown_keys,
)
from actors.task.resources.resources import Resources
from actors.task.startup.copy_overlap import EVERYTHING, UNTIL_COPIED
from actors.task.startup.past_statements import changes_between
from actors.task.startup.source_start import SourceStart
from actors.task.wiring.wiring import RunningTask
from actors.task_setup import address_of
from replicator.binlog.errors import OtherServerError
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.meta.chunks import COPY_TABLE
from replicator.downstream.meta.tracked_keys import MANY_KEYS, TRACKED_KEY_TABLE, tracked_targets
from replicator.downstream.rows.statements import RowRefusedError, TargetChangedError
from replicator.downstream.rows.write_session import Session
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import DUPLICATE_KEY, error_code, error_text
from replicator.mysql.names import Member, TableName
from replicator.mysql.server.binlog_end import binlog_end
from replicator.pipeline.copy.copy_chunk import ShardChangedError
from replicator.pipeline.moved_rows.key_holders import KeyHolder, TooOldError
from replicator.pipeline.moved_rows.moved_rows import OtherKeyError, Repair, repair
from replicator.schema.structure.structure import Table

LOOK_SECONDS = 0.5
"""Between two looks whether the overlap of copy and binlog is behind."""

GRACE_SECONDS = 5.0
"""How long after it the tracked keys are looked up: moves that were on their way have ended
then.
"""

SURVEY_SECONDS = 10.0
"""Between two looks at the tracked keys; at least ten times as long as the last one took."""

REPEAT_SECONDS = 60.0
"""How long a task that has put rows back works at least before it begins anew once more."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _SourceView:
    """A source as it is looked at: its connection, the end of its binlog, what may have changed
    tables between what was applied and that."""

    upstream: Connection
    end: BinlogPosition
    changed: Collection[TableName]


class MovedRows:
    """The keys that are noted, for one generation of a task.

    ``safe_until`` by source, as in `replicator.pipeline.apply.batch.ApplySettings`.
    """

    def __init__(
        self, resources: Resources, starts: Mapping[str, SourceStart], safe_until: dict[str, int]
    ) -> None:
        self.safe_until = safe_until
        self._resources = resources
        self._starts = starts
        self._always = EVERYTHING in safe_until.values()
        self._left = False
        self._has_put_back = False
        self._many = False
        self._table = resources.meta.table(TRACKED_KEY_TABLE)

    @property
    def notes(self) -> bool:
        """Whether keys are to be noted: some may have to be looked up later."""
        return self._left or not self._behind(
            {s: _applied(start) for s, start in self._starts.items()}
        )

    async def look_up(self) -> None:
        """Put back what tracked keys lack, if the overlap is behind; nothing must run yet.

        What is put back may be newer than the binlogs up to here: `safe_until` says how far.
        Raises FatalError, TransientError, DatabaseUnavailableError or FencedError.
        """
        connection = self._resources.meta.connection
        targets = await tracked_targets(connection, self._table)
        self._left = bool(targets)
        forget_readable(self._resources, targets)
        applied = {s: _applied(start) for s, start in self._starts.items()}
        if not targets or not (self._always or self._behind(applied)):
            return
        for target in targets.keys() - self._resources.blocked.targets:
            try:
                await self._look_up(target)
            except UnreadableShardError as error:
                report_unreadable(self._resources, target, error)
            except NotYetError as error:
                log.info("moved.later", target=str(target), reason=str(error))
        self._left = bool(await tracked_targets(connection, self._table))

    async def due(self, running: RunningTask) -> None:
        """Wait until there is something to put back; where that can't be any more, for ever.

        Raises FatalError, FencedError or DatabaseUnavailableError.
        """
        surveys = KeyReconciliation(
            self._resources, self._table, running, {s: v.server for s, v in self._starts.items()}
        )
        began, was_behind = time.monotonic(), False
        again = began + REPEAT_SECONDS if self._has_put_back else began
        next_survey = began + SURVEY_SECONDS
        # Where shards are copied later, the task begins anew for these before.
        while UNTIL_COPIED not in self.safe_until.values():
            if not self.notes:
                await running.writer.jobs.late.wait()
                self._left = True
            await anyio.sleep(LOOK_SECONDS)
            now = time.monotonic()
            behind = self._behind(surveys.saved())
            if behind and not was_behind:
                next_survey = now + GRACE_SECONDS
            was_behind = behind
            if now < next_survey:
                continue
            found = await surveys.look()
            next_survey = time.monotonic() + max(SURVEY_SECONDS, 10 * (time.monotonic() - now))
            if found.left > MANY_KEYS and not self._many:
                log.warning("moved.too-many", keys=found.left, limit=MANY_KEYS)
            self._many = found.left > MANY_KEYS
            if not (self._always or behind):
                continue
            if found.missing and now >= again:
                break
            if not found.left and not self._always:
                running.writer.jobs.note_no_more()
                await running.writer.flush()
                if await surveys.left():
                    break
                running.writer.jobs.late = anyio.Event()
                await running.writer.jobs.late.wait()
        else:
            await anyio.sleep_forever()
        log.info("moved.restarting")

    def _behind(self, applied: Mapping[str, int]) -> bool:
        """Whether no source is in safe mode any more."""
        return all(applied[s] >= until for s, until in self.safe_until.items() if s in applied)

    async def _look_up(self, target: TableName) -> None:
        """Put back what a target lacks of its tracked keys. Raises NotYetError, too."""
        table, members = await shards_of(self._resources, self._resources.meta.connection, target)
        seen: dict[str, _SourceView] = {}
        try:
            for source in {member.source for member in members}:
                seen[source] = await self._seen(source)
            holders = [await self._holder(m, table, seen[m.source]) for m in members]
            self._resources.counts.unreadable.waiting.pop(target, None)
        finally:
            for one in seen.values():
                one.upstream.close()
        ends = {source: one.end for source, one in seen.items()}
        keys = rows = 0
        after: bytes | None = b""
        while after is not None:
            found = await anyio.to_thread.run_sync(self._repair, table, holders, ends, after)
            keys, rows, after = keys + found.keys, rows + found.rows, found.last
            for source, place in found.read_at.items():
                self.safe_until[source] = max(place, self.safe_until.get(source, 0))
        self._has_put_back |= rows > 0
        log.info("moved.looked-up", target=str(target), keys=keys, rows=rows)

    async def _seen(self, source: str) -> _SourceView:
        setup, start = self._resources.setups[source], self._starts[source]
        upstream = Connection(setup.address)
        try:
            found = await binlog_end(upstream)
            assert found is not None, f"{source} is followed and has no binlog"
            end = BinlogPosition(found.file, found.offset)
            changes = await changes_between(setup, start.server, start.read_from, end)
        except MySQLError as error:
            upstream.close()
            raise refusal(setup.address, error, source=source) from error
        except BaseException:
            upstream.close()
            raise
        members = map(self._resources.registry.member, self._resources.registry.members_in(source))
        changed = {m.name for m in members if any(c.concerns(m.name) for c in changes)}
        return _SourceView(upstream, end, changed)

    async def _holder(self, member: Member, target: Table, seen: _SourceView) -> KeyHolder:
        """How a member is read. Its rows must be as those that follow from what was applied."""
        start = self._starts[member.source]
        if member.name in seen.changed:
            raise NotYetError(f"{member} is changed by a statement that is not executed yet")
        newest = max((w.transaction for w in start.high_watermarks.values()), default=-1)
        applied = max(_applied(start), newest + 1)
        return await holder_of(
            self._resources, member, target, seen.upstream, start.server, applied
        )

    def _repair(
        self,
        target: Table,
        holders: Sequence[KeyHolder],
        ends: Mapping[str, BinlogPosition],
        after: bytes,
    ) -> Repair:
        """Blocks; for a thread."""
        meta, name = self._resources.meta, TableName(target.schema, target.name)
        session = Session(address_of(self._resources.task.target_database))
        try:
            found = repair(
                session, self._table, meta.lease.fence, key_columns(target), holders, after
            )
            for source, place in found.read_at.items():
                if self.safe_until.get(source, 0) < place:
                    session.run(_safe_until(meta.table(COPY_TABLE), source, ends[source], place))
            reach(Failpoint.ROWS_PUT_BACK)
            session.run(b"COMMIT")
            reach(Failpoint.KEYS_SETTLED)
            return found
        except ShardChangedError as error:
            raise NotYetError(str(error)) from error
        except TooOldError as error:
            raise TransientError(f"{error} shows no row that is as new as its binlog") from error
        except (OtherServerError, TargetChangedError) as error:
            raise TransientError(str(error)) from error
        except OtherKeyError as error:
            raise unknown_keys(name, error) from error
        except RowRefusedError as error:
            values = self._resources.task.show_row_values
            raise _refused(name, error.code, error.shown(values=values)) from error
        except MySQLError as error:
            if error_code(error) != ER.LOCK_WAIT_TIMEOUT:
                raise
            raise locked_fault([name], error_text(error), f"target {name}") from error
        finally:
            session.close()


def _applied(start: SourceStart) -> int:
    return start.resume.binlog.key if start.resume else 0


def _safe_until(table: str, source: str, end: BinlogPosition, place: int) -> bytes:
    until = end.with_key(place)
    return b"REPLACE INTO %s (source,done,end_file,end_offset) VALUES (x'%s',1,x'%s',%d)" % (
        table.encode(),
        source.encode().hex().encode(),
        until.file.encode().hex().encode(),
        until.offset,
    )


def _refused(target: TableName, code: int, text: str) -> FatalError:
    if code in DUPLICATE_KEY:
        return FatalError(
            "rows.duplicate",
            f"two shards have rows with other keys, but the same values of a unique key: {text}."
            " The target has one of the rows",
            "change the values in one of the shards, or delete the row there; or drop the unique"
            " key on the target, if rows of different shards may be equal in it. Then"
            " `replicator resume`: the task looks both rows up again",
            where=f"target {target}",
            scope=of_target(target),
        )
    return FatalError(
        "rows.refused",
        f"the target refuses a row that one shard deleted and another shard has: {text}",
        TAKE_THE_ROW,
        where=f"target {target}",
        scope=of_target(target),
    )
