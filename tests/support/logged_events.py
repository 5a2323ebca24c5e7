"""What the program logs, as its source says: events with their levels and fields."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from replicator.status import CopyStatus
from tests.support.source_trees import nodes, tree

ROOT = Path(__file__).parents[2]
FILES = [ROOT / "cli.py", *(p for top in ("actors", "replicator", "config")
                            for p in sorted((ROOT / top).rglob("*.py")))]  # fmt: skip
LEVELS = {"debug", "info", "warning", "error", "exception", "critical", "warn", "log"}
EXPANDED = {
    "self._logged()": {field.name for field in fields(CopyStatus)} - {"state"} | {"seconds"}
}
"""The fields that an expression with two asterisks stands for."""
OF_EVERY_RECORD = {"task"}
OF_A_GROUP = ("self.log", {"source", "target"})
"""A logger that a base class binds for other modules, and its fields."""
PASSED_ON = {"fault.event", "error.event"}
"""The event of a fault, which its maker names literally."""


@dataclass(frozen=True)
class Logged:
    """One call: the event, its level, its fields, and where it is."""

    event: str
    level: str
    fields: frozenset[str]
    place: str


class PutTogetherError(Exception):
    """An event that does not stand in the source as it is logged."""


def texts(expression: ast.expr, module: ast.Module, place: str) -> Iterator[str]:
    """The texts that an expression can be: literals, or values of a dictionary of literals."""
    match expression:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from texts(body, module, place)
            yield from texts(orelse, module, place)
        case ast.Subscript(value=ast.Name(id=name)) if values := _values(name, module):
            for value in values:
                yield from texts(value, module, place)
        case _:
            raise PutTogetherError(f"{place}: {ast.unparse(expression)} is no literal name")


def _values(name: str, module: ast.Module) -> list[ast.expr]:
    """The values of a dictionary that a module defines."""
    for node in module.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=found)], value=ast.Dict(values=values))
                | ast.AnnAssign(target=ast.Name(id=found), value=ast.Dict(values=values))
            ) if found == name:
                return values
    return []


def _bound(module: ast.Module) -> Mapping[str, set[str]]:
    """By logger, the fields that are bound to it."""
    found: dict[str, set[str]] = defaultdict(set)
    for node in ast.walk(module):
        match node:
            case ast.Assign(
                targets=[target], value=ast.Call(func=ast.Attribute(attr="bind"), keywords=given)
            ):
                found[ast.unparse(target)] |= {k.arg for k in given if k.arg}
    return found


def _is_logger(expression: ast.expr) -> bool:
    return ast.unparse(expression).rpartition(".")[2] in ("log", "_log", "logger", "get_logger()")


def logged_in(module: ast.Module, name: str) -> Iterator[Logged]:
    """The calls of loggers in a module. Raises PutTogetherError."""
    bound = _bound(module)
    called = {id(node.func) for node in ast.walk(module) if isinstance(node, ast.Call)}
    for node in ast.walk(module):
        match node:
            case ast.Attribute(value=logger, attr=level) if (
                level in LEVELS and _is_logger(logger) and id(node) not in called
            ):
                raise PutTogetherError(f"{name}:{node.lineno}: call it here, with the event")
            case ast.Call(func=ast.Attribute(value=logger, attr=level), args=[first, *rest]) if (
                level in LEVELS and _is_logger(logger)
            ):
                place = f"{name}:{node.lineno}"
                if ast.unparse(first) in PASSED_ON:
                    continue
                if rest or level not in ("debug", "info", "warning", "error"):
                    raise PutTogetherError(f"{place}: give an event and its fields by name")
                of_logger = bound.get(ast.unparse(logger), set())
                if ast.unparse(logger) == OF_A_GROUP[0]:
                    of_logger = OF_A_GROUP[1]
                found = of_logger | _given(node) - OF_EVERY_RECORD
                for event in texts(first, module, place):
                    yield Logged(event, level, frozenset(found - OF_EVERY_RECORD), place)


def _given(call: ast.Call) -> set[str]:
    """The fields that a call gives."""
    given: set[str] = set()
    for keyword in call.keywords:
        if keyword.arg is None:
            given |= EXPANDED[ast.unparse(keyword.value)]
        else:
            given.add("exception" if keyword.arg == "exc_info" else keyword.arg)
    return given


@cache
def logged() -> list[Logged]:
    """All calls of loggers in the program, and the record that a command prints of its failure."""
    found = [call for file in FILES for call in logged_in(tree(file), str(file.relative_to(ROOT)))]
    return [*found, *_printed(ROOT / "replicator" / "terminal" / "consoles.py")]


def _printed(file: Path) -> Iterator[Logged]:
    """Records that are made as dictionaries."""
    for node in nodes(file):
        if isinstance(node, ast.Dict) and all(isinstance(key, ast.Constant) for key in node.keys):
            record = {
                ast.literal_eval(k): v for k, v in zip(node.keys, node.values, strict=True) if k
            }
            if "event" in record:
                event, level = (ast.literal_eval(record[key]) for key in ("event", "level"))
                given = record.keys() - {"event", "level", "timestamp"}
                yield Logged(event, level, frozenset(given), file.name)
