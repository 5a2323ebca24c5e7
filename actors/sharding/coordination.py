"""Strategies for coordinating shard DDL: what a task needs of one, and the one without locks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from actors.actor import Mailbox
from actors.lock_state import ShardStatement
from actors.messages import WriterMessage
from actors.sharding.group import GroupActor
from actors.sharding.uncoordinated_group import UncoordinatedGroup
from actors.writing.segment_tracker import SourceState
from replicator.mysql.names import TableName
from replicator.schema.registry.registry import SchemaRegistry
from replicator.sharding.lock import LockView, UnlockError
from replicator.watermark import Place, Watermark


class Unit(Protocol):
    """What a strategy needs to know about a source of the task."""

    source: str
    epoch: int
    state: SourceState
    low_watermarks: dict[int, Watermark]
    high_watermarks: dict[int, Watermark]
    groups: dict[int, GroupActor]

    @property
    def running(self) -> bool:
        """Whether groups can be started."""

    @property
    def restarting(self) -> bool:
        """Whether a restart is requested and not finished."""

    def group(self, target: int) -> GroupActor:
        """The group of a target; started on first use."""

    def restart(self) -> None:
        """Restart the source from its saved position."""


@dataclass(frozen=True, slots=True)
class OpenLock:
    """A lock for those who report it.

    ``id`` is how the operator names it. ``since``: when the earliest of its statements was
    executed, in seconds by the clock of its source; None while that is not known. ``holding``: the
    same of each source that holds rows behind it.
    """

    id: str
    view: LockView[TableName, ShardStatement]
    since: int | None
    holding: Mapping[str, int] = field(default_factory=dict)


class Coordination(Protocol):
    """A strategy: creates the groups, is notified when a source starts and stops, and answers those
    who look at the locks or force one."""

    async def run(self) -> None:
        """Do what there is to do beside the sources, until cancelled."""

    def make_group(self, unit: Unit, target: int) -> GroupActor:
        """The group of a target in an incarnation of a source."""

    def began(self, unit: Unit) -> None:
        """An incarnation starts; nothing has been read yet."""

    async def before_restart(self) -> None:
        """Wait for what is about to make sources restart, too, so that one restart serves it all.

        Not for long: what a source is to read again for waits as well.
        """

    def ended(self, unit: Unit) -> None:
        """An incarnation has ended; all that it read is applied and saved."""

    def open_items(self, source: str) -> Collection[Place]:
        """The places of open DDL items: the saved position stays before all of them."""

    def open_targets(self, source: str) -> Collection[int]:
        """The targets (numbers) that open items of a source are of."""

    def open_locks(self) -> Sequence[OpenLock]:
        """What waits for shards, for the operator, or to be executed."""

    async def unlock(self, lock: str, *, owner: str, skip: bool, shard: str = "") -> None:
        """Force a lock, named by its id; returns when that is decided and saved.

        ``owner`` is the source whose statement is executed (empty: the lock's own owner), ``shard``
        the one of its shards that has it (empty: any); with ``skip`` none is. Raises UnlockError
        with what to tell the operator, DisputedError where it has to be said whose statement.
        """


class Uncoordinated:
    """Executes every statement in stream order; no source ever waits for another.

    With ``keep_databases``, DROP DATABASE is never executed.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        writer: Mailbox[WriterMessage],
        *,
        keep_databases: bool = False,
    ) -> None:
        self._registry = registry
        self._writer = writer
        self._keep_databases = keep_databases

    async def run(self) -> None:
        """Nothing is left to do beside the sources."""

    def make_group(self, unit: Unit, target: int) -> GroupActor:
        """A group that counts the statements that were executed."""
        saved = unit.state.groups.get(target)
        version = 0
        if saved is not None:
            # Not from the low watermark: statements before it may still be read again.
            versions = [version for _, version in saved.members]
            version = saved.state.base if saved.state else max(versions, default=0)
        return UncoordinatedGroup(
            unit.source,
            target,
            self._registry,
            self._writer,
            version=version,
            low_watermark=unit.low_watermarks.get(target),
            keep_databases=self._keep_databases,
        )

    def began(self, unit: Unit) -> None:
        """Groups start when they are first needed."""

    async def before_restart(self) -> None:
        """No source is ever restarted."""

    def ended(self, unit: Unit) -> None:
        """Nothing is kept."""

    def open_items(self, source: str) -> Collection[Place]:
        """No DDL is ever left open."""
        return ()

    def open_targets(self, source: str) -> Collection[int]:
        """No DDL is ever left open."""
        return ()

    def open_locks(self) -> Sequence[OpenLock]:
        """Nothing ever waits."""
        return ()

    async def unlock(self, lock: str, *, owner: str, skip: bool, shard: str = "") -> None:
        """Raises UnlockError: there is no lock to force."""
        raise UnlockError("the task has no locks: its shard-mode is not pessimistic")
