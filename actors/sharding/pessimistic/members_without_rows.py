"""Members that have had no rows since their creation, so no older rows of them can differ."""

from __future__ import annotations

from actors.saved.lock_state import ShardStatement
from replicator.binlog.segments.row_events import RowEvents
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.ddl_effects import Effect, EffectKind
from replicator.schema.registry.registry import GONE, UNSEEN, SchemaRegistry
from replicator.sharding.pessimistic.group import Group
from replicator.watermark import Place


def creates_without_rows(
    effect: Effect, at: Place, group: Group[TableName, ShardStatement], registry: SchemaRegistry
) -> bool:
    """Whether a statement certainly creates a member without rows.

    Args:
        effect: the effect of the statement, which is not recorded yet.
        at: the position of the statement.
    """
    given = effect.instead is not None or effect.created is not None
    if given or effect.kind is not EffectKind.CREATE:
        # No event has the rows of a table that was moved, or that the operator has replaced.
        return False
    number = registry.number(Member(group.source, effect.table))
    before = UNSEEN if number is None else registry.held(number, at.transaction - 1)
    there = effect.table in group.members or before not in (UNSEEN, GONE)
    return not (there and effect.statement.only_if_missing)


def note_rows(
    rows: RowEvents | None, group: Group[TableName, ShardStatement], registry: SchemaRegistry
) -> bool:
    """Record the members of these rows; return whether one of them had no rows before."""
    names = [registry.member(number).name for number in rows.members] if rows is not None else []
    noted = [group.note_rows(name, had=True) for name in names if name in group.members]
    return any(noted)
