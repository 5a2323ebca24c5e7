"""Statements that change the values by which an expression filter has decided about rows.

A rule of `insert-value-expr` decides about a row by its values in the full copy or in the event.
If a statement converts a column of the rule, the result for the shard's rows may change without
any event: rows that were skipped would stay missing, and others would stay on the target.
"""

from __future__ import annotations

from collections.abc import Mapping

from actors.errors.faults import DdlEvent, FatalError, fault
from replicator.binlog.segments.segment import Statement
from replicator.ddl.parser.alter_actions import alter_actions
from replicator.ddl.parser.statement import StatementKind
from replicator.mysql.names import Member
from replicator.mysql.session_context.sql_modes import STRICT
from replicator.pipeline.plans.filter_columns import filter_column, known_collation
from replicator.routing.expression.expression_filter import ExpressionFilters
from replicator.routing.expression.types import ExpressionError, FilterColumn
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.effects.column_values import value_clause, value_columns
from replicator.schema.effects.ddl_effects import Effect
from replicator.schema.effects.touched_parts import Touched, column_part, touched_parts
from replicator.schema.structure.conversions import Fit, conversion
from replicator.schema.structure.structure import Column, Table


class FilteredColumns:
    """The rules by source.

    ``copies``: whether the task copies tables, and so can copy a target again.
    """

    def __init__(self, filters: Mapping[str, ExpressionFilters], *, copies: bool) -> None:
        self._filters = {source: of for source, of in filters.items() if of}
        self._copies = copies

    def refuse(
        self, effect: Effect, statement: Statement, member: Member, change: MemberChange
    ) -> None:
        """Raise FatalError if a filter might decide differently after a statement.

        This concerns a filter for the rows of the statement's shard.
        """
        filters = self._filters.get(member.source)
        answered = effect.answered if effect.filtered else effect.instead is not None
        if filters is None or answered:
            return
        if change.before is None or change.after is None:
            return
        names = _inserting_columns(filters, member, change.before)
        if not names or effect.statement.kind is not StatementKind.ALTER_TABLE:
            return
        touched = touched_parts(effect.statement, MemberChange(None, None))
        charset = any(action[0].keyword == "CONVERT" for action in alter_actions(effect.statement))
        mode = statement.context.sql_mode
        strict = mode is not None and bool(mode & STRICT)
        for name in names:
            before, after = change.before.column(name), change.after.column(name)
            if before is None or after is None:
                # If the rule does not fit the rows, the fault is raised where their plans are made.
                continue
            if _may_change(change, before, after, touched, charset=charset, strict=strict):
                raise self._fault(effect, statement, member, filters, (before, after))

    def _fault(
        self,
        effect: Effect,
        statement: Statement,
        member: Member,
        filters: ExpressionFilters,
        columns: tuple[Column, Column],
    ) -> FatalError:
        before, after = columns
        texts = "; ".join(filters.texts_of(member.name.schema, member.name.table))
        return fault(
            "ddl.filtered-column",
            "left-out" if effect.filtered else "executed",
            about=DdlEvent(member.source, statement.position),
            column=before.name,
            former=before.type,
            present=after.type,
            filters=texts,
            statement=effect.sql[:2000],
            member=member,
            target=effect.target,
            position=statement.position,
            copies=self._copies,
        )


NO_FILTERED_COLUMNS = FilteredColumns({}, copies=False)
"""The value for a task without expression filters."""


def _inserting_columns(
    filters: ExpressionFilters, member: Member, structure: Table
) -> tuple[str, ...]:
    """Return the columns that the shard's rules use, if a rule concerns new rows.

    The result also has the columns that these columns are computed from.
    """
    names: dict[str, None] = {}

    def find(name: str) -> FilterColumn | None:
        column = structure.column(name)
        if column is None:
            return None
        names[column.name] = None
        return filter_column(column)

    try:
        resolved = filters.resolved(member.name.schema, member.name.table, find, known_collation)
    except ExpressionError:
        resolved = None  # The planning of rows reports the error.
    if resolved is not None and not resolved.rules.insert:
        return ()
    for name in tuple(names):
        names |= dict.fromkeys(value_columns(structure, name))
    return tuple(names)


def _may_change(
    change: MemberChange,
    before: Column,
    after: Column,
    touched: Touched,
    *,
    charset: bool,
    strict: bool,
) -> bool:
    """Return whether a change of a column's values may change the result of an expression."""
    part = column_part(before.name)
    if part in touched.dropped | touched.renamed | touched.added:
        return True
    if part not in touched.converted and not (charset and before.charset):
        return False
    formulas = [
        value_clause(table, column.name) if column.generated else ""
        for table, column in ((change.before, before), (change.after, after))
        if table is not None
    ]
    return formulas[0] != formulas[1] or not _keeps_values(before, after, strict=strict)


def _keeps_values(before: Column, after: Column, *, strict: bool) -> bool:
    if before.nullable and not after.nullable and not strict:
        return False
    if (before.charset, before.collation) != (after.charset, after.collation):
        return False
    kinds = {before.base_type, after.base_type}
    families = {before.sql_type.family, after.sql_type.family}
    # CHAR and BINARY change trailing characters of values.
    alike = len(kinds) == 1 or (len(families) == 1 and kinds.isdisjoint(("char", "binary")))
    return alike and conversion(before, after).fit is Fit.ALL
