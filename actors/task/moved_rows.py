"""When keys that were deleted in safe mode are looked up in the other shards, and what follows.

The look-up is made before anything runs (`replicator.pipeline.moved_rows`); so while a task follows
its sources, it begins anew for it, as it does after a pause.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import anyio
import anyio.to_thread
import structlog
from pymysql.err import MySQLError

from actors.faults import FatalError, TransientError, of_target
from actors.member_columns import columns_of
from actors.refusals import refusal
from actors.task.copy_overlap import EVERYTHING
from actors.task.past_statements import changes_between
from actors.task.source_start import SourceStart
from actors.task.wiring import Resources, RunningTask
from actors.task_setup import address_of
from replicator.binlog.position import BinlogPosition
from replicator.downstream.chunks import COPY_TABLE
from replicator.downstream.deleted_keys import DELETED_KEY_TABLE, noted_targets
from replicator.downstream.session import Session
from replicator.downstream.statements import RowRefusedError
from replicator.mysql.binlog_end import binlog_end
from replicator.mysql.connection import Connection, DatabaseAddress
from replicator.mysql.names import Member, TableName, folded
from replicator.pipeline.changed_shard import ChangedTooMuchError
from replicator.pipeline.copy_chunk import ShardChangedError
from replicator.pipeline.copy_plan import plan_copy
from replicator.pipeline.moved_rows import Holder, LookedUp, OtherKeyError, TooOldError, put_back
from replicator.pipeline.planning import PlanError, filled_column, target_column
from replicator.pipeline.row_filter import rules_for
from replicator.pipeline.source_stream import SourceStream
from replicator.routing.expression_types import ExpressionError
from replicator.rows.fields import escape
from replicator.schema.inspection import read_table, read_target
from replicator.schema.structure import Table

LOOK_SECONDS = 0.5
"""Between two looks whether the overlap of copy and binlog is behind."""

GRACE_SECONDS = 5.0
"""How long after it keys are still noted: for rows that were on their way at its end."""

REPEAT_SECONDS = 60.0
"""Between two look-ups where they have no end: in safe mode for ever, or with keys left over."""

log = structlog.get_logger()


class _NotYetError(Exception):
    """A target's shards can't be looked in now; says why."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A source as it is looked at: its connection, the end of its binlog, what may have changed
    tables between what was applied and that."""

    upstream: Connection
    end: BinlogPosition
    changed: Collection[TableName]


class MovedRows:
    """The keys that are noted as deleted, for one generation of a task.

    ``safe_until`` by source, as in `replicator.pipeline.batch.ApplySettings`.
    """

    def __init__(
        self, resources: Resources, starts: Mapping[str, SourceStart], safe_until: dict[str, int]
    ) -> None:
        self.safe_until = safe_until
        self._resources = resources
        self._starts = starts
        self._always = EVERYTHING in safe_until.values()
        self._left = False
        self._columns = columns_of(resources.setups)
        self._table = resources.meta.table(DELETED_KEY_TABLE)

    @property
    def notes(self) -> bool:
        """Whether keys that are deleted are to be noted: some may have to be looked up later."""
        return self._left or not self._behind(
            {s: _applied(start) for s, start in self._starts.items()}
        )

    async def look_up(self) -> None:
        """Look the keys up that are noted, if the overlap is behind; nothing must run yet.

        What is put back may be newer than the binlogs up to here: `safe_until` says how far.
        Raises FatalError, TransientError, DatabaseUnavailableError or OutOfStepError.
        """
        targets = await noted_targets(self._resources.meta.connection, self._table)
        self._left = bool(targets)
        applied = {s: _applied(start) for s, start in self._starts.items()}
        if not targets or not (self._always or self._behind(applied)):
            return
        for target in targets:
            try:
                while await self._look_up(target):
                    pass
            except _NotYetError as error:
                log.info("moved.later", target=str(target), reason=str(error))
        self._left = bool(await noted_targets(self._resources.meta.connection, self._table))

    async def due(self, running: RunningTask) -> None:
        """Wait until there is something to look up; where that can't be any more, for ever.

        Raises DatabaseUnavailableError.
        """
        began, behind_since = time.monotonic(), None
        while self.notes:
            await anyio.sleep(LOOK_SECONDS)
            now = time.monotonic()
            if self._always or self._left:
                if now - began > REPEAT_SECONDS and await self._noted():
                    return
                continue
            applied = {source: running.writer.applied(source) for source in self._starts}
            if not self._behind({s: p.binlog.key if p else 0 for s, p in applied.items()}):
                behind_since = None
                continue
            behind_since = behind_since or now
            if now - behind_since > GRACE_SECONDS:
                running.writer.jobs.note_no_more()
                await running.writer.flush()
                if await self._noted():
                    return
                break
        await anyio.sleep_forever()

    def _behind(self, applied: Mapping[str, int]) -> bool:
        """Whether no source is in safe mode any more."""
        return all(applied[s] >= until for s, until in self.safe_until.items() if s in applied)

    async def _noted(self) -> bool:
        connection = Connection(address_of(self._resources.task.target_database))
        try:
            return bool(await noted_targets(connection, self._table))
        finally:
            connection.close()

    async def _look_up(self, target: TableName) -> bool:
        """Look some keys of a target up; whether there may be more. Raises _NotYetError, too."""
        registry = self._resources.registry
        table = await read_target(self._resources.meta.connection, target)
        members = [registry.member(m) for m in registry.members_of(registry.target(target))]
        if table is None or table.row_key is None or not members:
            raise _NotYetError("the target has no key, or is not there")
        if any(member.source not in self._starts for member in members):
            raise _NotYetError("a source of its shards is not read")
        seen: dict[str, _Seen] = {}
        try:
            for source in {member.source for member in members}:
                seen[source] = await self._seen(source)
            holders = [await self._holder(m, table, seen[m.source]) for m in members]
        finally:
            for one in seen.values():
                one.upstream.close()
        ends = {source: one.end for source, one in seen.items()}
        found = await anyio.to_thread.run_sync(self._put_back, table, holders, ends)
        log.info("moved.looked-up", target=str(target), keys=found.keys, rows=found.rows)
        for source, place in found.read_at.items():
            self.safe_until[source] = max(place, self.safe_until.get(source, 0))
        if found.shared:
            log.warning("moved.shared", target=str(target), keys=found.shared)
            return False
        return found.keys > 0

    async def _seen(self, source: str) -> _Seen:
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
        return _Seen(upstream, end, changed)

    async def _holder(self, member: Member, target: Table, seen: _Seen) -> Holder:
        """How a member is read. Its rows must be as those that follow from what was applied."""
        setup, start = self._resources.setups[member.source], self._starts[member.source]
        try:
            structure = await read_table(seen.upstream, member.name)
            if structure is None or member.name in seen.changed:
                raise _NotYetError(f"{member} is changed by a statement that is not executed yet")
            fingerprint = await anyio.to_thread.run_sync(
                _fingerprint, setup.address, member.name.quoted.encode()
            )
        except MySQLError as error:
            raise refusal(setup.address, error, source=member.source) from error
        try:
            rules = self._columns(member)
            passing = rules_for(setup.expression_filters, member.name, structure)
            condition = passing.copied if passing else ""
            copy = plan_copy(member.source, structure, fingerprint, target, 0, rules, condition)
            made = [filled_column(str(member), target, column) for column in rules.extracted]
        except (ExpressionError, PlanError, ChangedTooMuchError) as error:
            raise _NotYetError(str(error)) from error
        newest = max((w.transaction for w in start.high_watermarks.values()), default=-1)
        extracted = tuple((folded(column.name), escape(value)) for column, value in made)
        return Holder(copy, setup.address, max(_applied(start), newest + 1), extracted)

    def _put_back(
        self, target: Table, holders: list[Holder], ends: Mapping[str, BinlogPosition]
    ) -> LookedUp:
        """Blocks; for a thread."""
        meta, name = self._resources.meta, TableName(target.schema, target.name)
        assert target.row_key is not None
        columns = [c for n in target.row_key.columns if (c := target.column(n)) is not None]
        session = Session(address_of(self._resources.task.target_database))
        try:
            found = put_back(
                session, self._table, meta.lease.fence, list(map(target_column, columns)), holders
            )
            for source, place in found.read_at.items():
                if self.safe_until.get(source, 0) < place:
                    session.run(_safe_until(meta.table(COPY_TABLE), source, ends[source], place))
            session.run(b"COMMIT")
            return found
        except ShardChangedError as error:
            raise _NotYetError(str(error)) from error
        except TooOldError as error:
            raise TransientError(f"{error} shows no row that is as new as its binlog") from error
        except OtherKeyError as error:
            raise _unknown(name, error) from error
        except RowRefusedError as error:
            raise _refused(name, error) from error
        finally:
            session.close()


def _applied(start: SourceStart) -> int:
    return start.resume.binlog.key if start.resume else 0


def _fingerprint(address: DatabaseAddress, name: bytes) -> str:
    stream = SourceStream(address)
    try:
        return stream.fingerprint(name)
    finally:
        stream.close()


def _safe_until(table: str, source: str, end: BinlogPosition, place: int) -> bytes:
    until = end.with_key(place)
    return b"REPLACE INTO %s (source,done,end_file,end_offset) VALUES (x'%s',1,x'%s',%d)" % (
        table.encode(),
        source.encode().hex().encode(),
        until.file.encode().hex().encode(),
        until.offset,
    )


def _unknown(target: TableName, error: OtherKeyError) -> FatalError:
    return FatalError(
        "rows.moved-unknown",
        f"the key of {target} has changed since rows were deleted from it in safe mode ({error}):"
        " they can't be looked up in the other shards, and rows that moved between shards in two"
        " transactions may be missing",
        where=f"target {target}",
        scope=of_target(target),
        ways_out=(
            "copy the target's tables anew: `replicator stop`, empty it, `replicator run"
            " --remove-meta`",
        ),
    )


def _refused(target: TableName, error: RowRefusedError) -> FatalError:
    return FatalError(
        "rows.refused",
        f"a row that was deleted by one shard, and that another has, is refused: {error.text}",
        where=f"target {target}",
        scope=of_target(target),
        ways_out=(
            "remove what the error names from the target, or change the target's table so that it"
            " takes the row; then `replicator resume`",
        ),
    )
