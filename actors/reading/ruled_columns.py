"""Refuses schema changes of columns that the task file maps or extracts."""

from __future__ import annotations

from collections.abc import Iterable

from replicator.ddl.analysis.computed_values import formulas
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.mysql.names import TableName, folded, quote
from replicator.pipeline.plans.computed_columns import OWN_VALUE
from replicator.routing.columns.member_columns import ColumnRules, MemberColumns
from replicator.routing.routes import RouteError
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.effects.ddl_effects import DdlError, Effect, EffectKind
from replicator.schema.effects.touched_parts import column_part, touched_parts

_RENAMES = (EffectKind.RENAME, EffectKind.MOVE_IN)


def refuse_ruled(effects: Iterable[Effect], columns: ColumnRules) -> None:
    """Raise DdlError for a change of such a column, and for a new name that matches no rule.

    A statement that the task file filters out changes nothing on the target.
    """
    for effect in effects:
        name, other = effect.table, effect.renamed_to
        if effect.kind is EffectKind.CREATE:
            _rules(name, columns)
        elif effect.kind in _RENAMES and other is not None:
            if _rules(name, columns) != _rules(other, columns):
                raise DdlError(
                    f"{name} and {other}: the RENAME changes the values that the task file gives"
                    " the target's columns (mapped or extracted). The target has the table's rows"
                    " with the former values, and the task would not find them again. Change"
                    " these rows on the target by hand, then `replicator binlog skip`"
                )
        elif effect.kind is EffectKind.ALTER and not effect.filtered:
            _refuse_change(effect, name, _rules(name, columns))


def _rules(name: TableName, columns: ColumnRules) -> MemberColumns:
    try:
        return columns.of(name.schema, name.table)
    except RouteError as error:
        raise DdlError(str(error)) from error


def _refuse_change(effect: Effect, member: TableName, rules: MemberColumns) -> None:
    if effect.statement.kind is not StatementKind.ALTER_TABLE:
        return
    _refuse_formulas(effect.statement, member, rules)
    touched = touched_parts(effect.statement, MemberChange(None, None))
    for column in rules.extracted:
        if column_part(column.name) in touched.all:
            raise DdlError(
                f"{member} gets or changes a column {column.name}, but the target has a column of"
                " this name that the task file fills from the names of the shards: one of the two"
                " would be lost"
            )
    if rules.mapped is not None and column_part(rules.mapped.name) in touched.all:
        raise DdlError(
            f"{member} changes its column {rules.mapped.name}, whose values the task file maps."
            " The target has a BIGINT with the shards' numbers in it, and the same change could"
            " make its values wrong"
        )


def _refuse_formulas(statement: ParsedStatement, member: TableName, rules: MemberColumns) -> None:
    """Raise DdlError for a column that the target would compute from mapped values."""
    mapped = rules.mapped
    if mapped is None:
        return
    for column, kind, used in formulas(statement):
        name = next((name for name in used if folded(name) == folded(mapped.name)), None)
        if name is not None:
            what = "is computed from" if kind == "AS" else "comes with a default made of"
            raise DdlError(
                f"{member} gets a column {column} that {what} {name}, whose values the task file"
                " maps: the target would compute it from other values than the shard. `replicator"
                " binlog replace` with the same statement, but with the shard's own value,"
                f" ({quote(name)} & {OWN_VALUE}), in place of {name} there; if the target already"
                " has the column in this form from another shard, `replicator binlog skip`"
            )
