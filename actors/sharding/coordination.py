"""What a source's unit needs of the way in which shard DDL is coordinated, and the plain way."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from actors.mailbox import Mailbox
from actors.messages import WriterMessage
from actors.sharding.group import GroupActor
from actors.sharding.uncoordinated_group import UncoordinatedGroup
from actors.writing.segment_tracker import SourceState
from replicator.schema.registry import SchemaRegistry
from replicator.watermark import Place, Watermark


class Unit(Protocol):
    """A source of the task, as its groups are made from it."""

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
        """Whether a restart was asked for and is not done."""

    def group(self, target: int) -> GroupActor:
        """The group of a target, started when first asked for."""

    def restart(self) -> None:
        """Start the source anew from its saved position."""


class Coordination(Protocol):
    """Makes the groups of the sources, and hears of their incarnations."""

    def make_group(self, unit: Unit, target: int) -> GroupActor:
        """The group of a target in an incarnation of a source."""

    def began(self, unit: Unit) -> None:
        """An incarnation begins; nothing is read yet."""

    def ended(self, unit: Unit) -> None:
        """An incarnation has ended; all that it read is applied and saved."""

    def open_items(self, source: str) -> Collection[Place]:
        """The places of open DDL items: the source is not saved behind any of them."""


class Uncoordinated:
    """Every statement is executed in stream order; no source ever waits for another.

    ``keep_databases``: but DROP DATABASE never.
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

    def make_group(self, unit: Unit, target: int) -> GroupActor:
        """A group that counts the statements that were executed."""
        saved = unit.state.groups.get(target)
        version = 0
        if saved is not None:
            # Not from the low watermark: it may be behind statements that are going to be read
            # again.
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

    def ended(self, unit: Unit) -> None:
        """Nothing is kept."""

    def open_items(self, source: str) -> Collection[Place]:
        """No DDL is ever left open."""
        return ()
