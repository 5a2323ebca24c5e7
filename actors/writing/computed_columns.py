"""The fault of a column that a statement would let the target compute, while shards store it."""

from __future__ import annotations

from actors.faults import DdlEvent, FatalError, of_target
from replicator.binlog.segments.segment import Statement
from replicator.ddl.analysis.generated_columns import computed_columns
from replicator.ddl.parser.classify import classify
from replicator.downstream.ddl.ddl_execution import DdlExecution
from replicator.mysql.names import Member
from replicator.schema.effects.overridden_effects import OverrideAction
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.structure.structure import Table


def refuse_computed(
    registry: SchemaRegistry, ddl: DdlExecution, statement: Statement, *, agreed: bool
) -> None:
    """Raise FatalError where the target would replace values that a shard stores by computed ones.

    ``agreed``: the shards have agreed on the statement, so one that has ever had the column so has
    brought it.
    """
    if ddl.instead is not None:
        # The operator answers for what is executed.
        return
    parsed = classify(
        ddl.sql,
        default_schema=ddl.target.schema,
        ansi_quotes=ddl.context.ansi_quotes,
        no_backslash_escapes=ddl.context.no_backslash_escapes,
    )
    names = computed_columns(parsed)
    number = registry.number(ddl.member) if names else None
    if number is None:
        return
    for member in registry.members_of(registry.target_of(number)):
        places = registry.places(member)
        found = (registry.held(member, at).structure for at in places[0 if agreed else -1 :])
        known = [table for table in found if table is not None]
        for name in names:
            if _stores(known, name):
                raise _fault(ddl, statement, name, registry.member(member))


def _stores(known: list[Table], name: str) -> bool:
    columns = [column for table in known if (column := table.column(name)) is not None]
    return bool(columns) and not any(column.generated for column in columns)


def _fault(ddl: DdlExecution, statement: Statement, column: str, storing: Member) -> FatalError:
    return FatalError(
        "ddl.computed",
        f"a statement turns {column} into a generated column, and {storing} stores values of its"
        " own in it: the target would replace them by computed ones\n"
        f"  statement: {ddl.sql[:2000]}",
        where=f"{ddl.member}, target {ddl.target}",
        scope=of_target(ddl.target),
        remedies=(
            "`replicator binlog skip`: the target's column stays a plain one, and takes the values"
            " that this shard computes and those that others store, until the last shard has made"
            " the change",
        ),
        ddl_event=DdlEvent(
            ddl.member.source,
            statement.position,
            (OverrideAction.SKIP.value,),
        ),
    )
