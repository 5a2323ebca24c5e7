"""Which plans write their rows as parameters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pymysql.constants import FIELD_TYPE

from replicator.mysql.connection.prepared_statements import WireType
from replicator.pipeline.plans.parameter_plan import parameter_types
from replicator.pipeline.plans.row_filter import RowFilter
from replicator.routing.expression.expression_filter import RowRules
from replicator.schema.structure.structure import Column, UniqueKey
from tests.unit.replicator.pipeline.plans.test_planning import ID, plan, table, text

INT = WireType(FIELD_TYPE.LONG)
BYTES = WireType(FIELD_TYPE.BLOB)


def test_numbers_keep_their_type_and_texts_are_bytes() -> None:
    number = Column("n", "bigint(20) unsigned")
    both = table(ID, number, text("a"), Column("x", "double"), text("e", "enum('a')"))
    assert parameter_types(plan(both, both)) == (
        INT,
        WireType(FIELD_TYPE.LONGLONG, unsigned=True),
        BYTES,
        WireType(FIELD_TYPE.DOUBLE),
        BYTES,
    )


@pytest.mark.parametrize(
    ("shard", "target"),
    [
        (Column("v", "int(11)"), text("v")),
        (text("v", "set('a')"), text("v", "set('a')")),
        (text("v", charset="latin1"), text("v")),
        (Column("v", "uuid"), Column("v", "uuid")),
        (Column("v", "time"), Column("v", "time")),
    ],
    ids=["a number that becomes text", "set", "another charset", "uuid", "old time"],
)
def test_a_value_that_needs_a_text_makes_all_values_of_the_row_text(
    shard: Column, target: Column
) -> None:
    assert parameter_types(plan(table(ID, shard), table(ID, target))) is None


def test_a_wider_number_of_the_target_takes_that_of_the_shard() -> None:
    wide = replace(ID, type="bigint(20)")
    assert parameter_types(plan(table(ID), table(wide))) == (INT,)


def test_rows_are_found_by_a_key_that_is_no_double() -> None:
    x = Column("x", "double", nullable=False)
    of_x = table(x, keys=(UniqueKey("PRIMARY", ("x",)),))
    assert parameter_types(plan(of_x, of_x)) is None
    without = table(ID, keys=())
    assert parameter_types(plan(without, without)) is None


def test_what_a_row_lacks_or_a_rule_decides_is_text() -> None:
    assert parameter_types(plan(table(ID), table(ID, text("more")))) is None
    made = plan(table(ID), table(ID))
    assert (
        parameter_types(replace(made, filtering=RowFilter(RowRules(), (), (), (), (), (), True)))
        is None
    )
    assert parameter_types(replace(made, rows=replace(made.rows, until=0))) is None
    assert parameter_types(replace(made, rows=replace(made.rows, constants=(b"1",)))) is None
