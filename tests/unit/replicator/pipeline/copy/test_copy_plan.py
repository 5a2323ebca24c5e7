"""How shards are cut up: every row belongs to exactly one chunk, whatever the key."""

from __future__ import annotations

import pytest

from replicator.pipeline.copy.copy_plan import (
    CopyChunk,
    TableCopy,
    boundary_query,
    chunk_query,
    plan_copy,
)
from replicator.pipeline.plans.planning import PlanError
from replicator.schema.structure.structure import Column, Table, UniqueKey


def table(*columns: Column, key: tuple[str, ...] = (), name: str = "t") -> Table:
    keys = (UniqueKey("PRIMARY", key),) if key else ()
    return Table("s", name, columns, keys, f"CREATE TABLE `{name}` ()")


ID = Column("id", "int(11)", nullable=False)
NAME = Column("na`me", "varchar(20)", "latin1", "latin1_swedish_ci", nullable=False)
KIND = Column("kind", "enum('b','a')", "latin1", "latin1_swedish_ci", nullable=False)
RATIO = Column("ratio", "float")
LABELS = Column("labels", "set('b','a')", "latin1", "latin1_swedish_ci", nullable=False)


def copy_of(shard: Table, target: Table | None = None) -> TableCopy:
    return plan_copy("a", shard, "f", target or shard, 0)


def test_a_chunk_lies_behind_its_lower_bound_and_ends_with_its_upper() -> None:
    copy = copy_of(table(ID, RATIO, key=("id",)))
    assert chunk_query(CopyChunk(copy, 0, None, None)) == b"SELECT `id`,`ratio`*1e0 FROM `s`.`t`"
    assert chunk_query(CopyChunk(copy, 1, (b"-5",), (b"7",))) == (
        b"SELECT `id`,`ratio`*1e0 FROM `s`.`t` FORCE INDEX (`PRIMARY`) WHERE `id`>-5 AND `id`<=7"
    )


def test_a_key_of_several_columns_is_compared_column_by_column() -> None:
    copy = copy_of(table(ID, NAME, key=("na`me", "id")))
    query = chunk_query(CopyChunk(copy, 1, (b"a\\tb", b"3"), None))
    assert query.endswith(
        b" WHERE `na``me`>=_latin1 x'610962' AND (`na``me`>_latin1 x'610962' OR"
        b" (`na``me`=_latin1 x'610962' AND `id`>3))"
    )
    assert boundary_query(copy, None, 100) == (
        b"SELECT HEX(CAST(`na``me` AS BINARY)),HEX(CAST(`id` AS BINARY)) FROM `s`.`t`"
        b" FORCE INDEX (`PRIMARY`) ORDER BY `na``me`,`id` LIMIT 1 OFFSET 99"
    )


@pytest.mark.parametrize(
    ("key", "cut_by"),
    [
        (("id",), ["id"]),
        (("id", "kind", "na`me"), ["id"]),
        (("kind", "id"), []),
        (("ratio",), []),
        (("labels", "id"), []),
        ((), []),
    ],
)
def test_only_columns_that_compare_as_the_key_orders_them_serve_to_cut(
    key: tuple[str, ...], cut_by: list[str]
) -> None:
    shard = table(ID, NAME, KIND, RATIO, LABELS, key=key)
    copy = copy_of(shard, table(ID, NAME, KIND, RATIO, LABELS, key=("id",)))
    assert [column.name for column in copy.key] == cut_by
    assert bool(copy.key_name) == bool(cut_by)
    assert not copy.exact


def test_a_target_that_tells_rows_apart_by_nothing_takes_a_shard_in_one_piece() -> None:
    copy = copy_of(table(ID, key=("id",)), table(ID))
    assert copy.exact
    assert copy.key == ()


def test_a_key_that_the_shard_lacks_tells_none_of_its_rows_apart() -> None:
    own = Column("own", "bigint(20)", nullable=False)
    copy = copy_of(table(ID, key=("id",)), table(own, ID, key=("own",)))
    assert copy.exact
    assert copy.key == ()
    assert not copy.target.replace


def test_columns_go_by_name_and_text_into_another_charset() -> None:
    wide = Column("na`me", "varchar(20)", "utf8mb4", "utf8mb4_general_ci")
    copy = copy_of(
        table(ID, NAME, key=("id",)), table(wide, Column("more", "int"), ID, key=("id",))
    )
    assert copy.selected == (b"`id`", b"`na``me`")
    assert [column.name for column in copy.columns] == ["id", "na`me"]
    ((place, source, target),) = copy.transcodes
    assert (place, target) == (1, "utf_8")
    assert source != target


def test_a_column_that_the_target_lacks_is_an_error() -> None:
    with pytest.raises(PlanError, match="ratio"):
        copy_of(table(ID, RATIO, key=("id",)), table(ID, key=("id",)))
    with pytest.raises(PlanError, match="does not know"):
        copy_of(table(ID, Column("v", "xmltype"), key=("id",)))


NUMBER = Column("n", "int(10) unsigned")
TEXT = Column("x", "varchar(20)", "latin1", "latin1_swedish_ci")


@pytest.mark.parametrize(
    ("shard", "target", "typed"),
    [
        (NUMBER, NUMBER, True),
        (NUMBER, Column("n", "int unsigned"), True),
        (NUMBER, Column("n", "int(10)"), False),
        (NUMBER, Column("n", "bigint(20) unsigned"), False),
        (Column("n", "year(4)"), Column("n", "year"), True),
        (Column("n", "year(2)"), Column("n", "year(2)"), False),
        (Column("n", "datetime(3)"), Column("n", "datetime(3)"), True),
        (Column("n", "datetime(3)"), Column("n", "datetime(6)"), False),
        (TEXT, TEXT, True),
        (TEXT, Column("x", "varchar(20)", "utf8mb4", "utf8mb4_bin"), False),
        (Column("x", "text", "utf8"), Column("x", "text", "utf8mb3"), True),
        (TEXT, Column("x", "varchar(30)", "latin1", "latin1_swedish_ci"), False),
        (KIND, Column("kind", "enum('b','a','c')", "latin1", "latin1_bin"), False),
        (Column("n", "longtext", "utf8mb4"), Column("n", "longtext", "utf8mb4"), False),
        (Column("n", "uuid"), Column("n", "uuid"), False),
    ],
    ids=lambda given: given.type if isinstance(given, Column) else "",
)
def test_only_values_of_the_same_type_pass_without_becoming_text(
    shard: Column, target: Column, typed: bool
) -> None:
    assert copy_of(table(ID, shard, key=("id",)), table(ID, target, key=("id",))).typed is typed
