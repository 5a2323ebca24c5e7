"""Which plans write their rows as parameters, without making text of their numbers. Pure."""

from __future__ import annotations

from functools import lru_cache

from pymysql.constants import FIELD_TYPE

from replicator.mysql.column_types import Literal
from replicator.mysql.connection.prepared_statements import WireType
from replicator.pipeline.plans.plan import TablePlan
from replicator.rows.decoder.parameter_rows import parameter_type
from replicator.rows.values.column_format import RowFormat

_TAKEN_BY = {
    FIELD_TYPE.TINY: frozenset({Literal.NUMBER}),
    FIELD_TYPE.SHORT: frozenset({Literal.NUMBER}),
    FIELD_TYPE.LONG: frozenset({Literal.NUMBER}),
    FIELD_TYPE.LONGLONG: frozenset({Literal.NUMBER}),
    FIELD_TYPE.DOUBLE: frozenset({Literal.DOUBLE}),
    FIELD_TYPE.DATE: frozenset({Literal.QUOTED}),
    FIELD_TYPE.DATETIME: frozenset({Literal.QUOTED}),
}
"""The kind of column that takes a parameter of a binary type exactly as it takes its text."""

_BYTES = frozenset(Literal) - {Literal.PARSED, Literal.JSON, Literal.GEOMETRY, Literal.VECTOR}
"""The kinds of column that take a parameter of bytes as they take the field of a load."""


def parameter_types(plan: TablePlan) -> tuple[WireType, ...] | None:
    """Return the types of a plan's rows as parameters; None if they must be text.

    Rows stay text if the target finds them by their whole lines, or keeps columns that they lack,
    or if a rule of the task file decides which of them are written or what they contain.
    """
    if plan.filtering is not None or not plan.covers:
        return None
    return _types(plan.rows, tuple(column.literal for column in plan.target_columns))


@lru_cache(maxsize=4096)
def _types(rows: RowFormat, literals: tuple[Literal, ...]) -> tuple[WireType, ...] | None:
    if not rows.key or rows.constants or rows.until is not None:
        return None
    types = []
    for index, literal in zip(rows.written, literals, strict=True):
        found = parameter_type(rows.columns[index])
        if found is None:
            return None
        if literal not in _TAKEN_BY.get(found.code, _BYTES):
            return None
        if found.code == FIELD_TYPE.DOUBLE and index in (*rows.key, *rows.hashed):
            # A key is compared and hashed as text, which this way does not make of a DOUBLE.
            return None
        types.append(found)
    return tuple(types)
