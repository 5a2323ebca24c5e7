"""Columns of a shard that its target has since replaced, where DDL is not coordinated.

The target has dropped and added such a column again, or given its name to another one. The shard
has not made this change yet; until then, its values belong to the former column.
"""

from __future__ import annotations

from dataclasses import replace

import structlog

from actors.faults import COPY_AGAIN, FatalError, of_target
from actors.sharding.uncoordinated.change_histories import ChangeHistories
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.touched_parts import column_part, columns_of
from replicator.schema.structure.structure import Table
from replicator.sharding.uncoordinated.change_history import ChangeHistory, Former


class RecreatedColumns:
    """Keeps the values of former columns off the target, by the histories of the targets."""

    def __init__(self, histories: ChangeHistories) -> None:
        self._histories = histories
        self._loaded: dict[int, ChangeHistory[Member]] = {}
        self._told: set[tuple[Member, str, int]] = set()
        self._log = structlog.get_logger()

    async def load(self, target: int, name: TableName) -> None:
        """Read the history of a target again."""
        self._loaded[target] = await self._histories.of(name)

    def forget(self, target: int) -> None:
        """Drop what is cached of a target that has changed."""
        self._loaded.pop(target, None)

    def without(self, target: int, member: Member, structure: Table, table: Table) -> Table:
        """The target's table as a member with this structure may write it.

        A column that was dropped and added again is left out: the member's own change will give its
        rows the same values as on the target. Raises FatalError where rows need the column, or the
        member's values belong to another column.
        """
        history = self._loaded[target]
        found = history.former(member, columns_of(structure) & columns_of(table))
        if not found:
            return table
        parts = {former.part for former in found}
        needed = table.row_key is None or any(
            column_part(name) in parts for key in table.keys for name in key.columns
        )
        for former in found:
            if former.exchanged or needed:
                raise _belongs_elsewhere(history, member, table, former)
            if (member, former.part, former.number) not in self._told:
                self._told.add((member, former.part, former.number))
                self._log.warning(
                    "rows.column-left-out",
                    source=member.source,
                    member=str(member.name),
                    target=f"{table.schema}.{table.name}",
                    column=former.part.removeprefix("column "),
                    reason="the target has dropped and added it since, and this shard has not yet",
                )
        columns = (
            replace(column, withheld=True) if column_part(column.name) in parts else column
            for column in table.columns
        )
        return replace(table, columns=tuple(columns))


def _belongs_elsewhere(
    history: ChangeHistory[Member], member: Member, table: Table, former: Former
) -> FatalError:
    change = history.change(former.number)
    brought = f" by {change.member} ({change.text[:300]})" if change else ""
    return FatalError(
        "rows.recreated-column",
        f"{member} has written rows with the former {former.part}, and the target has another"
        f" column of this name now. The target has made a change{brought} that this shard had not"
        " made yet, so the values would go into the wrong column",
        f"make the change on the shard, then {COPY_AGAIN}. Next time, let no shard write"
        " between the change of the first shard and that of the last",
        where=f"{member}, target {table.schema}.{table.name}",
        scope=of_target(TableName(table.schema, table.name)),
    )
