"""The part of a sharding group that does not depend on how its DDL is coordinated."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

import structlog

from actors.actor import Actor
from actors.mailbox import Mailbox
from actors.messages import Drain, GroupMessage, Part, TargetRows, WriterMessage
from replicator.binlog.segment import RowEvents
from replicator.schema.copy_state import CopyState
from replicator.schema.registry import SchemaRegistry
from replicator.watermark import Watermark

GROUP_CAPACITY = 2
"""Segments that may wait for a group: the reader pauses before memory fills."""


class GroupActor(Actor[GroupMessage]):
    """All members of one target in one source: passes a segment's part on to the writer.

    Rows up to ``low_watermark`` are known to be on the target and are left out. Subclasses decide
    what a part holds.
    """

    def __init__(
        self,
        source: str,
        target: int,
        registry: SchemaRegistry,
        writer: Mailbox[WriterMessage],
        low_watermark: Watermark | None,
    ) -> None:
        super().__init__(f"group {source} {registry.target_name(target)}", capacity=GROUP_CAPACITY)
        self.source = source
        self.target = target
        self.registry = registry
        self.log = structlog.get_logger().bind(
            source=source, target=str(registry.target_name(target))
        )
        self._writer = writer
        self._low_watermark = low_watermark
        self._copied = registry.copied_places(source, target)
        self.segment = -1
        """The segment that is being decided, or was last."""

    @property
    def version(self) -> int:
        """The target version that the group's rows belong to."""
        raise NotImplementedError

    async def decide(self, message: TargetRows) -> Part:
        """What is to be done for the target in one segment."""
        raise NotImplementedError

    async def on_message(self, message: GroupMessage) -> None:
        """Decide a segment and pass the part on; confirm a drain."""
        if isinstance(message, Drain):
            message.done.set()
        else:
            self.segment = message.segment
            if message.rows is not None:
                message = replace(message, rows=self._not_copied(message.rows))
            await self._writer.put(await self.decide(message))

    def _not_copied(self, rows: RowEvents) -> RowEvents | None:
        """The rows that the full copy has not written to the target already, and will not."""
        copied, first = self._copied, rows.transaction[0]
        for member in [member for member, until in copied.items() if until <= first]:
            # Every later row of it was written after its copy.
            del copied[member]
        left_out = self.registry.leaves_out
        if not copied and not left_out:
            return rows
        copying = self.registry.copying
        places = [
            i
            for i, (member, at) in enumerate(zip(rows.member, rows.transaction, strict=True))
            if at >= copied.get(member, 0)
            and not (left_out and copying(member, at) is CopyState.LEFT_OUT)
        ]
        return part_of(rows, places) if places else None

    def after_low_watermark(self, rows: RowEvents) -> RowEvents | None:
        """The rows, all of the present version, that the target may not have yet."""
        low_watermark = self._low_watermark
        if low_watermark is None or low_watermark.version < self.version:
            return rows
        if low_watermark.version > self.version:
            return None
        applied = bisect_right(
            range(len(rows)),
            (low_watermark.transaction, low_watermark.ordinal),
            key=lambda i: (rows.transaction[i], rows.ordinal[i]),
        )
        if applied == 0:
            self._low_watermark = None
            return rows
        return None if applied == len(rows) else part_of(rows, range(applied, len(rows)))


def part_of(rows: RowEvents, places: range | list[int]) -> RowEvents:
    """The row events at these places, in their order."""
    return RowEvents(
        [rows.member[i] for i in places],
        [rows.table_map[i] for i in places],
        [rows.transaction[i] for i in places],
        [rows.ordinal[i] for i in places],
        [rows.event[i] for i in places],
    )
