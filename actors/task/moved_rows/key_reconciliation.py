"""Looks at the tracked keys while a task works: which need not be noted any more, what is
missing.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import anyio
import anyio.to_thread
import structlog
from pymysql.err import MySQLError

from actors.counts import Unreadable
from actors.faults import COPY_AGAIN, FatalError, TransientError, of_target
from actors.refusals import refusal
from actors.task.resources.resources import Resources
from actors.task.wiring.wiring import RunningTask
from actors.task_setup import address_of, columns_of
from replicator.binlog.errors import OtherServerError
from replicator.checks.connecting import account_of
from replicator.checks.source.followed_shards import why_unread
from replicator.downstream.meta.tracked_keys import tracked_targets
from replicator.downstream.rows.key_lookup import keys_there
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.downstream.rows.write_session import Session
from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseAddress,
    DatabaseUnavailableError,
)
from replicator.mysql.names import Member, TableName
from replicator.mysql.row_values import HIDDEN
from replicator.mysql.server.identity import ServerIdentity
from replicator.pipeline.copy.changed_shard import ChangedTooMuchError
from replicator.pipeline.copy.copy_plan import plan_copy
from replicator.pipeline.copy.key_conflicts import key_parts
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.pipeline.moved_rows.key_holders import KeyHolder, TooOldError
from replicator.pipeline.moved_rows.moved_rows import OtherKeyError
from replicator.pipeline.moved_rows.shared_keys import Survey, forget_settled, is_applied, survey
from replicator.pipeline.plans.planning import PlanError, target_column
from replicator.pipeline.plans.row_filter import rules_for
from replicator.routing.expression.types import ExpressionError
from replicator.schema.structure.inspection import read_table, read_target
from replicator.schema.structure.structure import Column, Table

LOOKS, LOOK_SECONDS = 50, 0.2
"""How often, and at which distance, it is looked whether what was seen is applied; if it is not by
then, the next look at the keys settles them."""


class NotYetError(Exception):
    """A target's shards can't be looked in now; says why."""


class UnreadableShardError(NotYetError):
    """The account may not read a shard: rows may be missing until somebody grants it."""

    def __init__(self, member: Member, why: Unreadable) -> None:
        self.member, self.why = member, why
        remedy = f": {why.remedy}" if why.remedy else ""
        super().__init__(
            f"{member} can't be read ({why.reason}), so nobody can say which keys it has; they"
            f" stay recorded until it can be read{remedy}"
        )


async def shards_of(
    resources: Resources, connection: Connection, target: TableName
) -> tuple[Table, Sequence[Member]]:
    """A target as it is now, and its shards. Raises NotYetError, DatabaseUnavailableError."""
    registry = resources.registry
    table = await read_target(connection, target)
    members = [registry.member(m) for m in registry.members_of(registry.target(target))]
    if table is None or table.row_key is None or not members:
        raise NotYetError("the target has no key, or is not there")
    if any(member.source in resources.blocked.sources for member in members):
        raise NotYetError("a source of its shards is not read")
    return table, members


def key_columns(target: Table) -> list[TargetColumn]:
    """The columns of a target's key."""
    return list(map(target_column, _key(target)))


def _key(target: Table) -> list[Column]:
    assert target.row_key is not None, f"{target.schema}.{target.name} has no key"
    return [c for name in target.row_key.columns if (c := target.column(name)) is not None]


async def holder_of(
    resources: Resources,
    member: Member,
    target: Table,
    upstream: Connection,
    server: ServerIdentity,
    applied: int,
) -> KeyHolder:
    """How a shard is read now; ``applied``: the place of the binlog of ``server`` that must be
    visible.

    Raises NotYetError, FatalError, TransientError or DatabaseUnavailableError.
    """
    setup = resources.setups[member.source]
    try:
        structure = await read_table(upstream, member.name)
        if structure is None:
            raise await _missing(upstream, member)
        fingerprint = await anyio.to_thread.run_sync(
            _fingerprint, setup.address, member.name.quoted.encode()
        )
    except MySQLError as error:
        of = TableName(target.schema, target.name)
        raise refusal(setup.address, error, source=member.source, of=of) from error
    try:
        rules = columns_of(resources.setups)(member)
        passing = rules_for(setup.expression_filters, member.name, structure)
        condition = passing.copied if passing else ""
        copy = plan_copy(member.source, structure, fingerprint, target, 0, rules, condition)
        key = key_parts(_key(target), target, rules)
    except (ExpressionError, PlanError, ChangedTooMuchError) as error:
        raise NotYetError(str(error)) from error
    return KeyHolder(copy, setup.address, server, applied, key)


async def _missing(upstream: Connection, member: Member) -> NotYetError:
    """Why a shard is not listed. Raises DatabaseUnavailableError or the server's error."""
    unread = await why_unread(upstream, member.name, await account_of(upstream))
    if unread is None:
        return NotYetError(f"{member} is not there, which is not applied yet")
    return UnreadableShardError(member, Unreadable(unread.reason, unread.grant))


def _fingerprint(address: DatabaseAddress, name: bytes) -> str:
    with closing(SourceStream(address)) as stream:
        return stream.fingerprint(name)


TELL_SECONDS = 60.0
"""Between two records of the log that say the same of a target."""

_PASSING = (MySQLError, OSError, OtherServerError, TransientError, DatabaseUnavailableError)

log = structlog.get_logger()


def report_unreadable(
    resources: Resources, target: TableName, error: UnreadableShardError, *, logged: bool = True
) -> None:
    """Show in the status that tracked keys of a target wait for a privilege, and log it."""
    resources.counts.unreadable.waiting[target] = error.member, error.why
    if logged:
        log.warning("moved.unreadable", target=str(target), reason=str(error))


def forget_readable(resources: Resources, targets: Collection[TableName]) -> None:
    """Take those targets out of the status that have no tracked keys any more."""
    waiting = resources.counts.unreadable.waiting
    for target in waiting.keys() - set(targets):
        del waiting[target]


@dataclass(frozen=True, slots=True)
class KeysLeft:
    """What a look has found: how many keys are noted still, and whether rows are to be put back."""

    left: int
    missing: bool


class KeyReconciliation:
    """Looks at the keys in ``table`` (its quoted name), for one generation of a task.

    ``servers``: by source, the one whose binlog is followed.
    """

    def __init__(
        self,
        resources: Resources,
        table: str,
        running: RunningTask,
        servers: Mapping[str, ServerIdentity],
    ) -> None:
        self._resources = resources
        self._table = table
        self._running = running
        self._servers = servers
        self._address = address_of(resources.task.target_database)
        self._told: dict[TableName, tuple[object, float]] = {}

    def saved(self) -> dict[str, int]:
        """By source, the place up to which all is applied, also what a lock or a fault holds."""
        found = {}
        for source in self._running.units:
            position = self._running.writer.tracker(source).resume.position
            found[source] = position.binlog.key if position else 0
        return found

    async def left(self) -> int:
        """How many keys are noted. Raises DatabaseUnavailableError."""
        with closing(Connection(self._address)) as connection:
            return sum((await tracked_targets(connection, self._table)).values())

    async def look(self) -> KeysLeft:
        """Look all tracked keys up in the shards, and forget those that are settled.

        Raises FatalError, FencedError or DatabaseUnavailableError.
        """
        with closing(Connection(self._address)) as connection:
            missing = False
            targets = await tracked_targets(connection, self._table)
            forget_readable(self._resources, targets)
            for target in targets:
                try:
                    missing |= await self._survey(connection, target)
                except UnreadableShardError as error:
                    logged = self._is_news(target, str(error))
                    report_unreadable(self._resources, target, error, logged=logged)
                except (NotYetError, TooOldError) as error:
                    self._tell_later(target, str(error))
                except _PASSING as error:
                    self._tell_later(target, f"a server says: {error}")
            return KeysLeft(sum((await tracked_targets(connection, self._table)).values()), missing)

    async def _survey(self, connection: Connection, target: TableName) -> bool:
        """Whether rows of a target are to be put back."""
        if target in self._resources.blocked.targets:
            raise NotYetError("the target is blocked, or is being copied")
        table, members = await shards_of(self._resources, connection, target)
        holders = [await self._holder(member, table) for member in members]
        self._resources.counts.unreadable.waiting.pop(target, None)
        found = await anyio.to_thread.run_sync(self._look, table, holders, abandon_on_cancel=True)
        if found.shared and self._is_news(target, found.shared):
            values = self._resources.task.show_row_values
            examples = [f"{key if values else HIDDEN} ({of})" for key, of in found.examples]
            log.warning("moved.shared", target=str(target), keys=found.shared, examples=examples)
        for _ in range(LOOKS):
            if is_applied(found, self.saved()):
                return await anyio.to_thread.run_sync(self._settle, table, found)
            await anyio.sleep(LOOK_SECONDS)
        return False

    def _tell_later(self, target: TableName, reason: str) -> None:
        if self._is_news(target, reason):
            log.info("moved.later", target=str(target), reason=reason)

    def _is_news(self, target: TableName, what: object) -> bool:
        now = time.monotonic()
        said, at = self._told.get(target, (None, now))
        news = said != what or now - at > TELL_SECONDS
        if news:
            self._told[target] = what, now
        return news

    async def _holder(self, member: Member, target: Table) -> KeyHolder:
        read = self._running.units[member.source].reader.progress.position
        setup = self._resources.setups[member.source]
        with closing(Connection(setup.address)) as upstream:
            place = read.binlog.key if read else self.saved()[member.source]
            server = self._servers[member.source]
            return await holder_of(self._resources, member, target, upstream, server, place)

    def _look(self, target: Table, holders: list[KeyHolder]) -> Survey:
        """Blocks; for a thread."""
        with closing(Session(self._address)) as session:
            try:
                return survey(session, self._table, key_columns(target), holders)
            except OtherKeyError as error:
                raise unknown_keys(TableName(target.schema, target.name), error) from error

    def _settle(self, target: Table, found: Survey) -> bool:
        """Forget what is settled; whether rows are missing all the same. Blocks; for a thread."""
        with closing(Session(self._address)) as session:
            forget_settled(session, self._table, self._resources.meta.lease.fence, found)
            there = keys_there(session, found.target, key_columns(target), found.missing)
            return len(there) < len(found.missing)


def unknown_keys(target: TableName, error: OtherKeyError) -> FatalError:
    """The fault that tracked keys can't be looked up."""
    return FatalError(
        "rows.moved-unknown",
        f"rows of {target} that moved between shards may be missing: its key has changed"
        f" ({error}) since the task recorded which keys several shards may have. The task can't"
        " look these keys up in the other shards any more",
        COPY_AGAIN,
        where=f"target {target}",
        scope=of_target(target),
    )
