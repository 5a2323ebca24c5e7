"""The faults of columns that give the rows of a shard other values than those of its target."""

from __future__ import annotations

from actors.faults import DdlEvent, FatalError, of_target
from replicator.binlog.segments.segment import Statement
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.overridden_effects import OverrideAction


def nondeterministic_defaults_fault(
    member: Member, target: TableName, function: str, sql: str, statement: Statement
) -> FatalError:
    """What it means that ``function`` is the default of a column that ``sql`` adds to ``target``.

    ``statement`` is the event.
    """
    return FatalError(
        "ddl.nondeterministic-default",
        f"a column is added whose default is another value at each execution ({function}): the rows"
        f" of the target would get others than they have in their shards\n"
        f"  statement: {sql[:2000]}",
        where=f"{member}, target {target}",
        scope=of_target(target),
        remedies=(
            "add the column to the target by hand, without this default and so that it may be NULL;"
            " give the target's rows the values that they have in their shards; then `replicator"
            " binlog skip`. In a target without a key, rows that their shard has changed since"
            " can't be found: copy the tables anew",
            "where the values of older rows need not be those of the shards: `replicator binlog"
            " replace` by the statement itself; `replicator binlog skip` where the target has the"
            " column",
        ),
        ddl_event=DdlEvent(
            member.source,
            statement.position,
            tuple(action.value for action in OverrideAction),
        ),
    )


def other_values_fault(
    member: Member, target: TableName, difference: str, sql: str, statement: Statement
) -> FatalError:
    """What it means that ``sql``, which the target has had in some way already, gives the rows of
    ``member`` other values. ``statement`` is the event."""
    return FatalError(
        "ddl.other-values",
        "a statement adds or exchanges a column that the target already has, and the rows of its"
        f" shard have other values than on the target: {difference}\n"
        f"  statement: {sql[:2000]}",
        where=f"{member}, target {target}",
        scope=of_target(target),
        remedies=(
            "give the rows of this shard on the target the values that they have in the shard, then"
            " `replicator binlog skip`",
            "where the column is computed, the target can have one formula only: change it in the"
            " shard, or leave the column out of the target",
        ),
        ddl_event=DdlEvent(
            member.source,
            statement.position,
            (OverrideAction.SKIP.value, OverrideAction.REPLACE.value),
        ),
    )
