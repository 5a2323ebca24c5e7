"""The templates of faults, and that the program gives each fault the fields of its templates."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from actors.errors.faults import DdlEvent, FatalError, fault, of_source, of_target
from actors.task.failover.failover import Failover
from replicator.binlog.positions.position import BinlogPosition
from replicator.events.fault_catalogue import (
    FAULT_SECTIONS,
    GIVEN_REMEDIES,
    FaultCase,
    Remedy,
    filled,
    shared_text,
)
from replicator.mysql.names import TableName
from replicator.mysql.server.identity import ServerIdentity
from replicator.schema.effects.overridden_effects import OverrideAction
from tests.support.source_trees import nodes

ROOT = Path(__file__).parents[4]
ACTORS = sorted((ROOT / "actors").rglob("*.py"))
NO_FIELDS = {"scope", "about", "recovery"}
"""The arguments of `fault` that are no fields."""
CASES = [
    (event, name, case)
    for event, section in FAULT_SECTIONS.items()
    for name, case in section.cases.items()
]


class Shown(str):
    """A field that shows its name, also if a template wants an attribute or a format of it."""

    def __getattr__(self, name: str) -> Shown:
        return self

    def __format__(self, spec: str) -> str:
        return f"<{self!s}>"


def fields_for(case: FaultCase, remedy: Remedy | None = None) -> dict[str, object]:
    """All fields of a case, such that a remedy applies."""
    fields: dict[str, object] = {name: Shown(name) for name in case.fields}
    if "remedies" in fields:
        fields["remedies"] = ("<remedies>",)
    if remedy is not None and remedy.condition:
        value = remedy.condition.partition("=")[2]
        fields[remedy.condition_field] = remedy.condition.startswith("if") and (value or True)
    return fields


@pytest.mark.parametrize(
    ("event", "name", "case"), CASES, ids=[f"{event} {name}".strip() for event, name, _ in CASES]
)
def test_each_template_shows_all_of_its_fields(event: str, name: str, case: FaultCase) -> None:
    fields = fields_for(case)
    texts = [filled(case.message, fields), filled(case.where, fields)]
    assert case.remedies, "what ends it?"
    for remedy in case.remedies:
        given = fields_for(case, remedy)
        assert remedy.applies(given)
        texts += remedy.rendered(given)
    conditions = {remedy.condition_field for remedy in case.remedies}
    assert {n for n in case.fields - conditions if f"<{n}>" not in " ".join(texts)} == set()
    assert all(text and "  " not in text.replace("\n  ", "\n") for text in texts)


def test_a_remedy_counts_only_under_its_condition() -> None:
    assert Remedy("x", "if a=b").applies({"a": "b"})
    assert not Remedy("x", "if a=b").applies({"a": "c"})
    assert not Remedy("x", "if a").rendered({"a": ""})
    assert Remedy("x", "unless a").rendered({"a": False}) == ("x",)
    assert Remedy(GIVEN_REMEDIES).rendered({"remedies": ("one", "two")}) == ("one", "two")


def test_a_field_that_is_missing_is_an_error() -> None:
    with pytest.raises(KeyError, match="source"):
        shared_text("begin_again")


def test_a_fault_has_the_texts_the_scope_and_the_answers_of_the_catalogue() -> None:
    target, event = TableName("m", "t"), DdlEvent("a", BinlogPosition("f.1", 4))
    found = fault(
        "ddl.history", about=event, error="no", source="a", target=target, statement="ALTER"
    )
    assert (found.message, found.where) == ("no", "source a, target m.t, statement: ALTER")
    assert found.remedies == (shared_text("copy_again"),)
    assert found.scope == of_target(target)
    assert isinstance(found.about, DdlEvent)
    assert found.about.actions == (OverrideAction.SKIP,)
    assert fault("source.missed-ddl", source="a", target=target, version=2, saved_at="").scope == (
        of_source("a")
    )


def test_a_failover_gives_its_faults_their_fields() -> None:
    server = ServerIdentity(1, "uuid")
    failover = Failover("a", "host:1", server, server, "f.1:4", "uuid:1-2")
    made = [
        method(*("x" for _ in range(len(inspect.signature(method).parameters))))
        for name, method in inspect.getmembers(failover, inspect.ismethod)
        if not name.startswith("_")
    ]
    assert all(isinstance(one, FatalError) and "host:1 is another" in one.message for one in made)
    assert len({one.message for one in made}) == len(made) == 7


@dataclass(frozen=True)
class Raised:
    """A call of `fault` in the program."""

    event: str
    cases: frozenset[str]
    fields: frozenset[str]
    kinds: frozenset[str]
    scoped: bool
    place: str


def raised() -> Iterator[Raised]:
    """Every call of `fault` with a name for its event."""
    for path in ACTORS:
        for call in nodes(path):
            if not isinstance(call, ast.Call) or ast.unparse(call.func) != "fault":
                continue
            if isinstance(call.args[0], ast.Name):
                assert path.name in {"failover.py"}, f"{path}: which event?"
                continue
            cases = frozenset(texts(call.args[1], path)) if call.args[1:] else frozenset({""})
            keywords = {str(keyword.arg) for keyword in call.keywords}
            yield Raised(
                ast.literal_eval(call.args[0]),
                cases,
                frozenset(keywords - NO_FIELDS),
                frozenset(
                    text
                    for keyword in call.keywords
                    if keyword.arg == "kind"
                    for text in texts(keyword.value, path)
                ),
                "scope" in keywords,
                f"{path.relative_to(ROOT)}:{call.lineno}",
            )


def texts(node: ast.expr, path: Path) -> Iterator[str]:
    """The texts that an expression can be: a constant, a choice, or what a function returns."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from texts(body, path)
            yield from texts(orelse, path)
        case ast.Call(func=ast.Name(id=name)):
            for function in nodes(path):
                if isinstance(function, ast.FunctionDef) and function.name == name:
                    for end in ast.walk(function):
                        if isinstance(end, ast.Return) and end.value:
                            yield from texts(end.value, path)
        case ast.Name(id=name):
            for given in nodes(path):
                if isinstance(given, ast.Assign) and ast.unparse(given.targets[0]) == name:
                    yield from texts(given.value, path)


def problems(one: Raised) -> Iterator[str]:
    section = FAULT_SECTIONS[one.event]
    if not one.cases or one.cases - section.cases.keys():
        yield f"{one.place}: {one.event} has no such case: {set(one.cases)}"
        return
    wanted = [section.cases[name].fields for name in one.cases]
    if missing := frozenset().union(*wanted) - one.fields:
        yield f"{one.place}: {one.event} needs {set(missing)}"
    if not one.scoped and section.blocks in {"target", "source"} - one.fields:
        yield f"{one.place}: {one.event} needs the {section.blocks} that it blocks"
    blocked = {section.blocks} if not one.scoped else set[str]()
    known = {name for case in section.cases.values() for name in case.fields} | blocked
    kinds = {
        remedy.condition.partition("=")[2]
        for name in one.cases
        for remedy in section.cases[name].remedies
        if remedy.condition_field == "kind"
    }
    if one.kinds and one.kinds != kinds:
        yield f"{one.place}: {one.event} has remedies for {kinds}, the program gives {one.kinds}"
    if unused := one.fields - known:
        yield f"{one.place}: no template of {one.event} uses {set(unused)}"


def test_the_program_gives_each_fault_the_fields_of_its_templates() -> None:
    assert [problem for one in raised() for problem in problems(one)] == []


def test_each_case_of_a_fault_is_raised_somewhere() -> None:
    calls: Mapping[str, set[str]] = {event: set() for event in FAULT_SECTIONS}
    for one in raised():
        calls[one.event].update(one.cases)
    of_failover: set[Any] = {
        tuple(map(ast.literal_eval, call.args[:2]))
        for call in nodes(ROOT / "actors" / "task" / "failover" / "failover.py")
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "self._fault"
    }
    for event, *case in of_failover:
        calls[event].add(case[0] if case else "")
    assert {(event, name) for event, name, _ in CASES} == {
        (event, name) for event, names in calls.items() for name in names
    }
