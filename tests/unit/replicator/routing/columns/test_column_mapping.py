"""The layout is that of DM's package ``column-mapping``, whose numbers these are."""

from __future__ import annotations

import pytest

from replicator.routing.columns.column_mapping import (
    VALUE_LIMIT,
    ColumnMappings,
    MappedColumn,
    MappingRule,
)
from replicator.routing.routes import RouteError


def rule(
    instance: int | None = 1,
    schema: str = "test",
    table: str = "t",
    separator: str = "_",
    *,
    name: str = "m",
    tables: str = "t*",
) -> MappingRule:
    return MappingRule(name, "test*", tables, "id", instance, schema, table, separator)


def upper(given: MappingRule, schema: str, table: str, *, case_sensitive: bool = False) -> int:
    found = ColumnMappings([given], case_sensitive=case_sensitive).of(schema, table)
    assert found is not None
    assert found.name == "id"
    return found.upper


def test_instance_schema_and_table_have_their_bits() -> None:
    assert upper(rule(1), "test_2", "t_3") == 1 << 59 | 2 << 52 | 3 << 44
    assert upper(rule(15), "test_127", "t_255") | VALUE_LIMIT - 1 == (1 << 63) - 1
    assert upper(rule(0), "test_0", "t_0") == 0


def test_what_is_left_out_leaves_no_gap() -> None:
    assert upper(rule(None), "test_2", "t_3") == 2 << 56 | 3 << 48
    assert upper(rule(1, schema=""), "test_x", "t_3") == 1 << 59 | 3 << 51
    assert upper(rule(None, schema=""), "test_x", "t_3") == 3 << 55
    assert upper(rule(1, table=""), "test_2", "tx") == 1 << 59 | 2 << 52
    assert upper(rule(1, schema="", table=""), "test_x", "tx") == 1 << 59
    assert upper(rule(None, schema="", table=""), "test_x", "tx") == 0


def test_a_name_that_is_its_prefix_is_number_0_and_the_separator_may_be_empty() -> None:
    assert upper(rule(), "test", "t") == 1 << 59
    assert upper(rule(separator=""), "test2", "t03") == 1 << 59 | 2 << 52 | 3 << 44


def test_case_counts_where_the_task_file_says_so() -> None:
    assert upper(rule(), "TEST_2", "T_3") == upper(rule(), "test_2", "t_3")
    with pytest.raises(RouteError, match="'t' nor 't_'"):
        upper(rule(schema="", tables="*"), "test_2", "T_3", case_sensitive=True)


@pytest.mark.parametrize("table", ["t_", "t_x", "t_1_2", "t_-1", "t_+1", "t_1 ", "t_٣", "tt_1"])
def test_a_name_without_a_number_is_refused(table: str) -> None:
    with pytest.raises(RouteError, match="can't number the table of test_1"):
        upper(rule(), "test_1", table)


@pytest.mark.parametrize(
    ("given", "schema", "table", "words"),
    [
        (rule(), "test_128", "t_1", "128 does not fit into the 7 bits"),
        (rule(), "test_1", "t_256", "256 does not fit into the 8 bits"),
        (rule(16), "test_1", "t_1", "16 does not fit into the 4 bits"),
    ],
)
def test_a_number_without_room_is_refused(
    given: MappingRule, schema: str, table: str, words: str
) -> None:
    with pytest.raises(RouteError, match=words):
        upper(given, schema, table)


def test_a_rule_for_tables_precedes_one_for_schemas() -> None:
    whole = rule(2, table="", tables="", name="whole")
    both = ColumnMappings([whole, rule(1)], case_sensitive=False)
    assert both.of("test_1", "t_1") == MappedColumn("id", 1 << 59 | 1 << 52 | 1 << 44)
    assert both.of("test_1", "u") == MappedColumn("id", 2 << 59 | 1 << 52)
    assert both.of("else", "t_1") is None


def test_two_rules_for_a_table_are_refused() -> None:
    both = ColumnMappings([rule(), rule(name="n", tables="*")], case_sensitive=False)
    with pytest.raises(RouteError, match="'m' and 'n'"):
        both.of("test_1", "t_1")


def test_a_value_keeps_the_lower_bits() -> None:
    column = MappedColumn("id", 1 << 59)
    assert column.mapped(0) == 1 << 59
    assert column.mapped(VALUE_LIMIT - 1) == 1 << 59 | (1 << 44) - 1
    for value in (-1, VALUE_LIMIT, (1 << 64) - 1):
        with pytest.raises(ValueError, match="is not between 0 and 17592186044415"):
            column.mapped(value)
