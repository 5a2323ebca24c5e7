"""CHECK constraints as servers write them: which there are, and which are the same."""

from __future__ import annotations

import pytest

from replicator.schema.effects.check_constraints import (
    check_constraints,
    form_of,
    with_column_checks,
    without_checks_of,
)
from replicator.schema.structure.structure import Table

CREATE = """CREATE TABLE `t` (
  `id` int(11) NOT NULL DEFAULT 3 COMMENT 'CHECK (x)' CHECK (`id` > 0),
  `j` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`j`)),
  PRIMARY KEY (`id`),
  KEY `check` (`j`(5)),
  CONSTRAINT `two` CHECK ((`id` + 1) * 2 < 9 /*!80016 NOT ENFORCED */),
  CONSTRAINT `idle` CHECK ((`id` < 9)) /*!80016 NOT ENFORCED */,
  CONSTRAINT `f` FOREIGN KEY (`id`) REFERENCES `o` (`id`)
)"""


def test_the_constraints_of_a_table_that_are_enforced() -> None:
    found = check_constraints(Table("d", "t", (), (), CREATE))
    assert [(check.name, check.column, check.expression[:9]) for check in found] == [
        ("", "id", "(`id` > 0"),
        ("", "j", "(json_val"),
        ("two", "", "( ( `id` "),
    ]


def test_a_check_stands_again_where_mariadb_has_it() -> None:
    before = without_checks_of(CREATE, {"id"})
    assert "CHECK (`id` > 0)" not in before
    assert "json_valid" in before
    elsewhere = before.replace(" CHECK (json_valid(`j`))", "").replace(
        "\n)", ",\nCONSTRAINT `t_chk_1` CHECK ((json_valid(`j`)))\n)"
    )
    assert with_column_checks(elsewhere, CREATE) == before.replace("(json", "((json").replace(
        "j`))", "j`)))"
    )
    assert (
        with_column_checks(elsewhere, before.replace(" CHECK (json_valid(`j`))", "")) == elsewhere
    )


@pytest.mark.parametrize(
    "texts",
    [
        ("(`a` > 0)", "((`A` > 0))"),
        (
            "(`b` <> 'x' or `b` is null)",
            "(((`b` <> _utf8mb4'x') or (`b` is null)))",
            "((`b` != _utf8mb4'x' or `b` is null))",
        ),
        (
            "(`a` < 100 and `b`  not like 'q%')",
            "(((`a` < 100) and (not((`b` like _utf8mb4'q%')))))",
            "((`a` < 100 and not (`b` like _utf8mb4'q%')))",
        ),
        (
            "(char_length(`b`) < 9 and `a` in (1,2,-3))",
            "(((char_length(`b`) < 9) and (`a` in (1,2,-(3)))))",
        ),
        ("((`a` + 1) * 2 between 1 and 9)", "((((`a` + 1) * 2) between 1 and 9))"),
        ("(json_valid(`j`))", "(JSON_VALID(`J`))"),
    ],
)
def test_one_expression_as_mariadb_mysql_and_tidb_write_it(texts: tuple[str, ...]) -> None:
    assert len({form_of(text) for text in texts}) == 1


@pytest.mark.parametrize(
    "texts",
    [
        ("(`a` > 0)", "(`a` < 0)", "(`a` >= 0)", "(`b` > 0)", "(`a` > 1)", "(`a` > '0')"),
        ("(`a` or `b` and `c`)", "((`a` or `b`) and `c`)"),
        ("(length(`a`) < 9)", "(char_length(`a`) < 9)"),
        ("(`a` like 'x')", "(`a` not like 'x')", "(`a` like 'X')", "(`a` like _latin1'x')"),
        ("(`a` - 1 - 2)", "(`a` - (1 - 2))"),
        ("(a ~~ b ((", "(a ~~ c (("),
    ],
)
def test_expressions_that_differ(texts: tuple[str, ...]) -> None:
    assert len({form_of(text) for text in texts}) == len(texts)
