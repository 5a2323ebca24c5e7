"""Expressions of generated columns and CHECKs, as MySQL, MariaDB and TiDB write them."""

from __future__ import annotations

from itertools import combinations

import pytest

from replicator.schema.effects.expression_forms import expression_form


@pytest.mark.parametrize(
    "texts",
    [
        ("((`a` + (`b` * 2)) - `c`)", "(`a` + `b` * 2 - `c`)"),
        ("(-(`a`) - `b`)", "(-`a` - `b`)"),
        ("(`a` % 3)", "(`a` MOD 3)", "mod(`a`, 3)"),
        ("(0 = `a`)", "(`a` = 0)", "(not `a`)", "!`a`"),
        ("(`a` >= `b`)", "(not (`a` < `b`))"),
        ("(`a` <> `b`)", "(`a` != `b`)", "(not (`a` = `b`))"),
        ("(`a` not between `b` and `c`)", "(not `a` between `b` and `c`)"),
        ("(not((`s` like _utf8mb4'x%')))", "(`s`  not like 'x%')", "(not `s` like _utf8mb4'x%')"),
        ("(`a` is not null)", "(not `a` is null)", "(not isnull(`a`))"),
        ("((0 <> `a`) and (0 <> `b`))", "(`a` <> 0 and `b` <> 0)", "(`a` and `b`)"),
        ("((0 = `a`) or (`b` <> 1))", "(`a` = 0 or `b` <> 1)", "(not (`a` and `b` = 1))"),
        ("((0 <> `a`) is not true)", "(`a` is not true)"),
        ("(`a` + true)", "(`a` + 1)"),
        ("upper(`s`)", "ucase(`s`)"),
        ("length(`s`)", "octet_length(`s`)"),
        ("char_length(`s`)", "character_length(`s`)"),
        ("substr(`s`,1,2)", "substring(`s`, 1, 2)", "mid(`s`, 1, 2)"),
        ("locate(_utf8mb4'a',`s`)", "instr(`s`, _utf8mb4'a')", "position(_utf8mb4'a' in `s`)"),
        ("replace(`s`,_utf8mb4'a',_utf8mb4'b')", "replace(`s`,'a','b')"),
        ("dayofmonth(`d`)", "day(`d`)"),
        ("cast(`d` as date)", "date(`d`)"),
        ("cast(`d` as time)", "time(`d`)"),
        ("(to_days(`d`) - to_days(`e`))", "datediff(`d`, `e`)"),
        ("(`d` - interval `a` hour)", "date_sub(`d`, interval `a` hour)"),
        ("cast(`a` as char charset utf8mb4)", "cast(`a` as char)"),
        ("cast(`a` as char(5) charset utf8mb4)", "cast(`a` as char(5))"),
        ("round(`f`,0)", "round(`f`)"),
        ("(`d` + interval 5 minute)", "timestampadd(minute, 5, `d`)"),
        ("cast(`s` as char charset binary)", "cast(`s` as binary)", "binary `s`"),
        ("convert(`s` using latin1)", "convert(`s` using 'latin1')"),
        ("json_extract(`j`,_utf8mb4'$.a')", "json_extract(`j`,'$.a')"),
        ("json_value(`j`, _utf8mb4'$.a' returning char(512))", "json_value(`j`,'$.a')"),
        ("regexp_like(`s`,_utf8mb4'a')", "(`s` regexp 'a')"),
        ("concat(`s`,0x41)", "concat(`s`,'A')", "concat(`s`, x'41')"),
        ("(`a` + 0x03)", "(`a` + b'11')"),
        ("(`f` * 1e3)", "(`f` * 1e+03)"),
        ("concat(`s`,_utf8mb4'it\\'s')", "concat(`S`, 'it''s')"),
    ],
)
def test_servers_write_one_expression_in_several_ways(texts: tuple[str, ...]) -> None:
    assert len({expression_form(text) for text in texts}) == 1


def test_what_means_something_else_has_another_form() -> None:
    texts = (
        *("(`a` - `b`)", "(`b` - `a`)", "(`a` + `b`)", "(`a` < `b`)", "(`a` > `b`)"),
        *("(`a` <= `b`)", "(`a` = `b`)", "(`a` <> `b`)", "(`a` <=> `b`)", "(`a` and `b`)"),
        *("(`a` or `b`)", "(`a` xor `b`)", "if(`a`,`b`,`c`)", "if(`a`,`c`,`b`)"),
        *(
            "if(`a` > `b`,1,0)",
            "if(`a` > `b`,0,1)",
            "(`a` + 1)",
            "(`a` + 0)",
            "(`a` - (`b` - `c`))",
        ),
        *("(`a` - `b` - `c`)", "upper(`s`)", "lower(`s`)", "length(`s`)", "char_length(`s`)"),
        *("left(`s`,1)", "right(`s`,1)", "concat(`a`,`s`)", "concat(`s`,`a`)", "hour(`d`)"),
        *("minute(`d`)", "greatest(`a`,`b`)", "least(`a`,`b`)", "`a`", "(not `a`)"),
        *("(`a` is null)", "(`a` is not null)", "(`s` like 'x')", "(`s` not like 'x')"),
        *("trim(leading 'x' from `s`)", "trim(trailing 'x' from `s`)", "concat(`s`,'X')"),
        *("cast(`a` as char(5))", "cast(`a` as char charset utf8mb4)", "round(`f`,1)"),
        *("cast(`a` as char charset latin1)", "concat(`s`,'x')", "(`a` ~~ b ((", "(`a` ~~ c (("),
    )
    for one, other in combinations(texts, 2):
        assert expression_form(one) != expression_form(other), (one, other)
