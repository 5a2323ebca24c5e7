"""By which collation a filter compares texts whose column a statement has brought."""

from __future__ import annotations

from dataclasses import replace

import pytest

from actors.writing.row_filters import ShardCollations, with_collations
from replicator.binlog.events.table_map import OptionalMetadata, TableMap
from replicator.mysql.column_types import ColumnType
from replicator.mysql.names import TableName
from replicator.pipeline.plans.row_filter import rules_for
from replicator.routing.expression.expression_filter import (
    ExpressionFilters,
    ExpressionRule,
    Fate,
    ResolvedRules,
    RowFates,
)
from replicator.routing.expression.types import ExpressionError
from replicator.schema.registry.registry import dump_structure, load_structure
from replicator.schema.scratch.stand_ins import taken_over
from replicator.schema.structure.structure import Column, Table

CREATE = "CREATE TABLE `x` (\n  `a` varchar(9)\n) DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
READ = Column("a", "varchar(9)", "utf8mb4", "utf8mb4_bin")
ADDED = replace(READ, name="b", learned=True)
STRUCTURE = Table("s", "x", (READ, ADDED), (), CREATE)
LACKING = ShardCollations(
    {46: "utf8mb4_bin", 255: "utf8mb4_0900_ai_ci"}, frozenset({"utf8mb4_bin"})
)
ALL_THERE = replace(LACKING, stand_ins=frozenset())


def table_map(*collations: int) -> TableMap:
    types = (int(ColumnType.VARCHAR),) * 2
    told = OptionalMetadata(collations=collations or None)
    return TableMap("s", "x", types, (36, 36), (True, True), told)


def resolved(expression: str, collations: ShardCollations, told: TableMap) -> ResolvedRules:
    rule = ExpressionRule("f", "s", "x", insert=expression)
    filters = ExpressionFilters([rule], case_sensitive=False)
    structure, doubtful = with_collations(STRUCTURE, told, collations)
    found = rules_for(filters, TableName("s", "x"), structure, doubtful=doubtful)
    assert found is not None
    return found


def test_what_the_rows_tell_counts() -> None:
    told = resolved("b = 'A'", LACKING, table_map(46, 255))
    assert RowFates(told.rules).inserted(["a"]) is Fate.NOTHING
    same = resolved("b = 'A'", LACKING, table_map(46, 46))
    assert RowFates(same.rules).inserted(["a"]) is Fate.INSERT
    with pytest.raises(ExpressionError, match="utf8mb4_number_7 compares texts is not known"):
        resolved("b = 'A'", LACKING, table_map(46, 7))


@pytest.mark.parametrize(
    "expression", ["b = 'A'", "b LIKE 'A%'", "b IN ('a', 'b')", "a = 'a' AND b <> ''"]
)
def test_a_collation_that_may_stand_for_another_is_refused(expression: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        resolved(expression, LACKING, table_map())
    assert "which collation b has is not known" in str(caught.value)
    assert "b COLLATE utf8mb4_bin" in str(caught.value)
    resolved(expression, ALL_THERE, table_map())


def test_what_was_read_at_the_source_or_is_named_is_not_refused() -> None:
    fates = RowFates(resolved("a = 'A'", LACKING, table_map()).rules)
    assert fates.inserted(["A"]) is Fate.NOTHING
    named = resolved("b COLLATE utf8mb4_bin = 'A' OR b IS NULL", LACKING, table_map())
    fates = RowFates(named.rules)
    assert [fates.inserted([text]) for text in ("a", "A")] == [Fate.INSERT, Fate.NOTHING]
    assert fates.inserted([None]) is Fate.NOTHING


def test_what_a_statement_touches_is_learned_and_stays_so() -> None:
    before = replace(STRUCTURE, columns=(READ,))
    base, after = before, replace(STRUCTURE, columns=(READ, replace(ADDED, learned=False)))
    found = taken_over(before, base, after, (), None)
    assert [column.learned for column in found.columns] == [False, True]
    saved = load_structure(dump_structure(found))
    assert saved is not None
    assert [column.learned for column in saved.columns] == [False, True]
    assert saved == replace(after, create_sql=found.create_sql), "it makes no structures differ"
    again = taken_over(saved, base, base, (), None)
    assert [column.learned for column in again.columns] == [False]
