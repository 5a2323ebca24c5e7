"""The held rows of a group: kept in memory, released, and applied."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from actors.saved.lock_state import ShardStatement
from replicator.binlog.segments.row_events import OWN_ROWS, RowEvents, chained
from replicator.failpoints import Failpoint, reach
from replicator.mysql.names import TableName
from replicator.schema.registry.registry import SchemaRegistry
from replicator.sharding.hold import HeldPart
from replicator.sharding.pessimistic.group import Group

BYTES_OF_EVENT = 40
"""Bytes of a row event in the arrays of its table."""


@define(eq=False)
class RowsInMemory:
    """Keeps rows of a group (`Group.buffer`) in memory until their version is released.

    Attributes:
        asked: whether an empty segment for the rows of the next version was requested.
    """

    _group: Group[TableName, ShardStatement]
    _registry: SchemaRegistry
    asked: bool = field(default=False, init=False)
    _section: int = field(default=0, init=False)
    _since: dict[int, int | None] = field(factory=dict, init=False)
    _released: dict[int, tuple[int, int]] = field(factory=dict, init=False)

    def keep(self, version: int, rows: RowEvents) -> None:
        """Keep rows of a segment until their version is released, if there is enough memory."""
        buffer = self._group.buffer
        if not buffer.has_lost(version):
            # Copy the rows: a selection would keep the data of its whole segment.
            own = rows.gathered()
            size = own.size + BYTES_OF_EVENT * len(own)
            buffer.add(version, HeldPart(own, len(own), size, self._section_of(own)))

    def _section_of(self, rows: RowEvents) -> int:
        """Return the section of a segment's rows.

        A new section if a member's structure has changed.
        """
        for kind, first in rows.firsts.items():
            of = rows.kinds[kind]
            for member in {of.member, of.parent} - {OWN_ROWS}:
                since = self._registry.since(member, int(rows.transaction[first]))
                if self._since.setdefault(member, since) != since:
                    self._since[member] = since
                    self._section += 1
        return self._section

    def release(self, version: int, epoch: int, segment: int) -> RowEvents | None:
        """Let the group use the target's ``version``; return its held rows for a segment of a run.

        The group may no longer be able to use it, for example after the RENAME of a table. Then the
        coordinator restarts the source.
        """
        self.asked = False
        group = self._group
        if group.known >= version or not group.can_release:
            return None
        parts: list[RowEvents] = group.release()
        if not parts:
            return None
        self._released[group.known] = (epoch, segment)
        reach(Failpoint.ROWS_RELEASED)
        return chained(parts)

    def settle(self, passed: Callable[[int, int], bool]) -> None:
        """Close the items of released versions whose rows are applied.

        Args:
            passed: whether everything up to a segment of a run is applied.
        """
        for version, place in tuple(self._released.items()):
            if passed(*place):
                del self._released[version]
                self._group.released(version)
