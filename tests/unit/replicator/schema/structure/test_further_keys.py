"""Whether other rows can stand in the way of a row whose key is free."""

from __future__ import annotations

import pytest

from replicator.schema.structure.structure import Column, Table, UniqueKey, only_row_key_collides

COLUMNS = (
    Column("id", "int", nullable=False),
    Column("a", "int"),
    Column("number", "bigint", nullable=False, auto_increment=True),
    Column("made", "int", generated=True),
)
PRIMARY = UniqueKey("PRIMARY", ("ID",))
PERIODS = """CREATE TABLE `t` (
  `id` int(11) NOT NULL COMMENT 'UNIQUE KEY `x` (`a` WITHOUT OVERLAPS)',
  PERIOD FOR `p` (`s`, `e`),
  PRIMARY KEY (`id`,`p` WITHOUT OVERLAPS)
) ENGINE=InnoDB"""
UNIQUE_PERIODS = PERIODS.replace("PRIMARY KEY", "UNIQUE KEY `q``1`")
PLAIN = PERIODS.replace("`p` WITHOUT OVERLAPS", "`s`")


def collides(*keys: UniqueKey, written: tuple[str, ...] = ("Id", "a"), sql: str = PLAIN) -> bool:
    return not only_row_key_collides(Table("s", "t", COLUMNS, keys, sql), written)


def test_a_key_alone_refuses_only_rows_that_have_it() -> None:
    assert not collides(PRIMARY)


@pytest.mark.parametrize(
    "keys",
    [
        (),
        (PRIMARY, UniqueKey("u", ("a",), nullable=True)),
        (PRIMARY, UniqueKey("u", ("made",), nullable=True)),
        (PRIMARY, UniqueKey("u", ("number", "a"))),
        (UniqueKey("PRIMARY", ("number",)), UniqueKey("u", ("id",))),
        (UniqueKey("u", ("a",), nullable=True),),
    ],
)
def test_keys_of_what_shards_write_refuse_more(keys: tuple[UniqueKey, ...]) -> None:
    assert collides(*keys)


def test_numbers_that_the_target_gives_are_never_taken() -> None:
    own = UniqueKey("n", ("NUMBER",))
    assert not collides(PRIMARY, own)
    assert collides(PRIMARY, own, written=("id", "number"))


def test_a_key_without_overlaps_refuses_rows_with_other_values() -> None:
    assert collides(PRIMARY, sql=PERIODS)
    assert collides(UniqueKey("q`1", ("id",)), sql=UNIQUE_PERIODS)
