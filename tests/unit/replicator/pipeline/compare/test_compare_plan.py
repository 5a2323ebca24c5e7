"""How a target and its shards are read to be compared: what is selected, left out, told apart."""

from __future__ import annotations

import zlib
from dataclasses import replace
from itertools import product

from replicator.mysql.names import Member, TableName
from replicator.pipeline.compare.compare_plan import ComparisonPlan, plan_comparison
from replicator.pipeline.compare.compare_queries import bound_of, checksum_query, rows_query
from replicator.pipeline.compare.compare_structures import ComparedShard
from replicator.pipeline.compare.value_forms import double_value, float_value, json_value
from replicator.routing.columns.column_mapping import MappedColumn
from replicator.routing.columns.member_columns import ExtractedColumn, MemberColumns
from replicator.schema.structure.structure import Column, Table, UniqueKey

ID = Column("id", "bigint(20)", nullable=False)
V = Column("v", "varchar(9)", "utf8mb4", "utf8mb4_bin")
PRIMARY = UniqueKey("PRIMARY", ("id",))


def table(*columns: Column, name: str = "t", key: UniqueKey = PRIMARY) -> Table:
    return Table("db", name, columns, (key,), f"CREATE TABLE `{name}` (\n) ENGINE=InnoDB")


def shard(*columns: Column, rules: MemberColumns | None = None) -> ComparedShard:
    member = Member("a", TableName("db", "t1"))
    return ComparedShard(member, table(*columns, name="t1"), rules or MemberColumns())


def plan(target: Table, *shards: ComparedShard) -> ComparisonPlan:
    return plan_comparison(target, shards)


def test_columns_are_selected_in_one_order() -> None:
    found = plan(table(ID, V), shard(V, ID))
    assert rows_query(found.target, None, None) == b"SELECT `id`,`v` FROM `db`.`t`"
    assert rows_query(found.shards[0], None, None) == b"SELECT `id`,`v` FROM `db`.`t1`"
    assert found.checksums
    assert found.key == (0,)
    assert found.nullable == (1,)


def test_ranges_of_a_mapped_key_are_in_the_values_of_the_shard() -> None:
    upper = 1 << 44
    rules = MemberColumns(mapped=MappedColumn("id", upper))
    found = plan(table(ID, V), shard(ID, V, rules=rules))
    low, high = (b"%d" % (upper + 5),), (b"%d" % (upper + 9),)
    assert rows_query(found.shards[0], low, high).endswith(b" WHERE `id`>5 AND `id`<=9")
    assert rows_query(found.target, low, high).endswith(
        b" FORCE INDEX (`PRIMARY`) WHERE `id`>%d AND `id`<=%d" % (upper + 5, upper + 9)
    )
    assert bound_of(found.shards[0], (b"35",)) == low


def test_what_is_not_on_both_sides_is_left_out_by_name() -> None:
    own, waiting = Column("own", "int(11)"), Column("w", "int(11)")
    found = plan(table(ID, V, own), shard(ID, V, waiting), shard(ID))
    texts = {(out.column, out.harmless) for out in found.left_out}
    assert texts == {("own", True), ("v", False), ("w", False)}
    assert [column.name for column in found.columns] == ["id"]


def test_a_column_whose_type_does_not_hold_the_values_of_a_shard_is_left_out_by_name() -> None:
    number, strict = Column("v", "int(11)"), replace(V, nullable=False)
    found = plan(table(ID, number), shard(ID, V), shard(ID, number))
    assert [(out.column, out.harmless) for out in found.left_out] == [("v", False)]
    assert "does not hold all values of a: db.t1" in found.left_out[0].why
    assert any("column v is int" in text for text in found.structure.unfit)
    assert [column.name for column in found.columns] == ["id"]
    found = plan(table(ID, strict), shard(ID, V))
    assert [column.name for column in found.columns] == ["id", "v"]
    assert found.nullable == (1,)


def test_what_both_compute_is_compared_whatever_the_formulas_are() -> None:
    computed = Column("c", "int(11)", generated=True)

    def with_formula(formula: str) -> Table:
        line = f"`c` int(11) GENERATED ALWAYS AS ({formula}) STORED"
        text = f"CREATE TABLE `t` (\n  `t` timestamp,\n  {line}\n) ENGINE=InnoDB"
        return replace(table(ID, Column("t", "timestamp"), computed), create_sql=text)

    member = Member("a", TableName("db", "t1"))
    theirs = ComparedShard(member, with_formula("hour(`t`)"), MemberColumns())
    for formula in ("hour(`t`)", "minute(`t`)"):
        found = plan(with_formula(formula), theirs)
        assert [column.name for column in found.columns] == ["id", "t", "c"]
        assert found.left_out == ()


def test_what_an_open_statement_has_changed_is_left_out() -> None:
    fill = replace(Column("c", "int(11)"), fill="NULL")
    lacking = plan_comparison(table(ID, fill), [shard(ID, fill), shard(ID)], joins=True)
    assert (lacking.filled, lacking.left_out) == (True, ())
    renamed = replace(shard(ID), open=frozenset({"c", "d"}))
    found = plan_comparison(table(ID, fill), [shard(ID, fill), renamed], joins=True)
    assert [(out.column, out.harmless) for out in found.left_out] == [("c", True)]
    other = replace(shard(ID), open=frozenset({"b"}))
    found = plan_comparison(table(ID, fill), [shard(ID, fill), other], joins=True)
    assert (found.filled, found.left_out) == (True, ())


def test_an_extracted_key_cuts_no_ranges() -> None:
    key = UniqueKey("PRIMARY", ("c", "id"))
    target = table(Column("c", "varchar(9)", "utf8mb4", "utf8mb4_bin", nullable=False), ID, key=key)
    rules = MemberColumns(extracted=(ExtractedColumn("c", "one"),))
    found = plan(target, shard(ID, rules=rules))
    assert not found.ranged
    assert found.key == (0, 1)


def test_forms_of_values() -> None:
    assert float_value(b"0.10000000149011612") == float_value(b"0.1")
    assert float_value(b"1e+20") == float_value(b"1e20")
    assert double_value(b"-0") == double_value(b"0")
    assert float_value(b"-0") == float_value(b"0")
    assert double_value(b"0.1") != double_value(b"0.10000000149011612")
    assert json_value(b'{"b": 1, "a": [1.50]}') == json_value(b'{"a":[1.5],"b":1}')
    assert json_value(b"[1]") != json_value(b"[2]")
    alike = {
        b"[1.0, 1e2, -0.0]": b"[1,100,0]",
        b"[18446744073709551616]": b"[1.8446744073709552e19]",
        b"[-1e19]": b"[-10000000000000000000]",
    }
    assert [json_value(one) for one in alike] == [json_value(other) for other in alike.values()]
    assert json_value(b"[9007199254740993]") != json_value(b"[9007199254740992.0]")
    assert json_value(b"[1e400]") != json_value(b"[0]")
    assert json_value(b"[0.1]") != json_value(b"[0.10000000000000002]")


def test_a_sum_of_checksums_shows_that_rows_have_exchanged_values() -> None:
    found = plan(table(ID, V), shard(ID, V))
    query = checksum_query(found, found.target, None, None)
    assert b"SUM(COALESCE(CRC32(CRC32(" in query

    def nested(key: int, value: int) -> int:
        return zlib.crc32(b"%d" % zlib.crc32(b"%d\t%d" % (key, value)))

    for a, b, v, w in product(range(10, 30), range(30, 50), range(10, 20), range(20, 30)):
        assert nested(a, v) + nested(b, w) != nested(a, w) + nested(b, v)
