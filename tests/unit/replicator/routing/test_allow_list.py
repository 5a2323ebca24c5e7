from __future__ import annotations

from typing import Any

import pytest

from replicator.routing.allow_list import AllowList, TableFilter
from replicator.routing.wildcards import PatternError


def allow(**lists: Any) -> AllowList:
    return AllowList(**{"case_sensitive": False, **lists})


def tables(*names: str) -> list[TableFilter]:
    return [TableFilter(*name.split(".", 1)) for name in names]


ALL = ["a.t", "a.log", "a.u", "b.t", "logs.x", "forum.users"]


@pytest.mark.parametrize(
    ("lists", "passing"),
    [
        ({}, ALL),
        ({"do_dbs": ["a"]}, ["a.t", "a.log", "a.u"]),
        ({"do_dbs": ["~^(a|b)$"]}, ["a.t", "a.log", "a.u", "b.t"]),
        ({"do_dbs": ["[ab]"]}, ["a.t", "a.log", "a.u", "b.t"]),
        ({"ignore_dbs": ["a", "log*"]}, ["b.t", "forum.users"]),
        # ignore-dbs has no say beside do-dbs.
        ({"do_dbs": ["a", "b"], "ignore_dbs": ["a"]}, ["a.t", "a.log", "a.u", "b.t"]),
        ({"do_tables": tables("a.t", "forum.*")}, ["a.t", "forum.users"]),
        ({"do_tables": tables("~^[ab]$.t")}, ["a.t", "b.t"]),
        ({"do_tables": tables("a.~^[tu]$")}, ["a.t", "a.u"]),
        ({"do_tables": tables("~^a.~g$")}, ["a.log"]),
        ({"ignore_tables": tables("*.log", "b.t")}, ["a.t", "a.u", "logs.x", "forum.users"]),
        # A match in do-tables passes even if it is in ignore-tables as well.
        ({"do_tables": tables("a.*"), "ignore_tables": tables("a.log")}, ["a.t", "a.log", "a.u"]),
        # The schema must pass first.
        ({"do_dbs": ["b"], "do_tables": tables("a.t", "b.t")}, ["b.t"]),
        ({"ignore_dbs": ["b"], "do_tables": tables("a.t", "b.t")}, ["a.t"]),
        ({"do_dbs": ["a"], "ignore_tables": tables("a.log")}, ["a.t", "a.u"]),
        ({"do_dbs": ["a"], "do_tables": tables("b.t")}, []),
    ],
)
def test_the_algorithm(lists: dict[str, Any], passing: list[str]) -> None:
    allowed = allow(**lists)
    assert [name for name in ALL if allowed.allows(*name.split("."))] == passing


def test_database_statements_look_at_schemas_only() -> None:
    lists = allow(do_dbs=["a"], do_tables=tables("b.t"))
    assert lists.allows_schema("a")
    assert not lists.allows_schema("b")
    assert allow(do_tables=tables("b.t")).allows_schema("a")


@pytest.mark.parametrize(
    "schema", ["mysql", "information_schema", "performance_schema", "sys", "MySQL", "dm_meta"]
)
def test_system_schemas_and_the_meta_schema_never_pass(schema: str) -> None:
    for lists in (
        allow(never=["DM_meta"]),
        allow(do_dbs=["*"], do_tables=tables("*.*"), case_sensitive=True, never=["dm_meta"]),
    ):
        assert not lists.allows_schema(schema)
        assert not lists.allows(schema, "t")
        assert lists.allows("other", "t")


def test_names_match_without_case_unless_told_otherwise() -> None:
    assert allow(do_dbs=["A"]).allows("a", "t")
    assert not allow(do_dbs=["A"], case_sensitive=True).allows("a", "t")
    assert allow(do_tables=tables("~^A$.~^T$")).allows("a", "t")
    assert not allow(ignore_tables=tables("A.T")).allows("a", "t")
    assert allow(ignore_tables=tables("A.T"), case_sensitive=True).allows("a", "t")


@pytest.mark.parametrize(
    ("lists", "key"),
    [
        ({"do_dbs": [""]}, "do-dbs"),
        ({"ignore_dbs": ["~("]}, "ignore-dbs"),
        ({"do_tables": [TableFilter("a", "")]}, "do-tables"),
        ({"ignore_tables": [TableFilter("[", "t")]}, "ignore-tables"),
    ],
)
def test_broken_patterns_name_their_list(lists: dict[str, Any], key: str) -> None:
    with pytest.raises(PatternError, match=f"^{key} of the block-allow-list: the pattern"):
        allow(**lists)
