"""The page of the texts that the messages of faults pass on, made from the program's source.

``python -m scripts.messages_reference > docs/reference/messages.md`` writes it again.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import ChainMap, Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]

_HEAD = """\
# Texts in the messages of faults

This page is made from the program (`python -m scripts.messages_reference`); don't edit it. The
[runbook](../runbook/faults.md) has the messages of all faults. Some of them pass on the text of an
error, which is one of these. `{…}` stands for a value that the task fills in.
"""

_ROOMS = ("actors", "replicator", "config")

_Function = ast.FunctionDef | ast.AsyncFunctionDef

CAUSES = {
    "copy.no-room": "NoRoomError",
    "copy.shard-changed": "ChangedTooMuchError ShardChangedError",
    "ddl.forbidden": "ForbiddenStatementError",
    "ddl.not-supported": "DdlError OnlineDdlError UnknownModeError",
    "rows.cascade-in-safe-mode": "CascadeInSafeModeError",
    "rows.filter-unfit": "UnsupportedExpressionError",
    "rows.no-plan": "MisfitError PlanError RouteError UnfitTargetError",
    "rows.unfiltered": "EvaluationError",
    "source.changed": "OtherServerError",
    "source.name-case": "OtherNamesError",
    "source.other-order": "OtherOrderError",
    "source.purged": "PurgedError",
    "source.reset": "OtherBinlogError",
    "source.unreadable": "AccessRefusedError DamagedStreamError UnsupportedEventError",
    "spark.executors": "ClusterError",
    "target.not-created": "TargetNotCreatedError",
}
"""The errors whose texts a fault passes on, by its event."""


_EVENT_OF = {name: event for event, names in CAUSES.items() for name in names.split()}

_Scope = Mapping[str, ast.expr]
"""The texts that have a name where a message is made."""


@dataclass(frozen=True, slots=True)
class PassedText:
    """The text of an error that a fault passes on, with the event of the fault."""

    event: str
    text: str


@cache
def passed_texts() -> tuple[PassedText, ...]:
    """All texts, by their events."""
    texts = [
        path.read_text(encoding="utf-8")
        for room in _ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
    ]
    raising = re.compile("|".join(map(re.escape, _EVENT_OF)))
    found = {passed for text in texts if raising.search(text) for passed in _in(ast.parse(text))}
    return tuple(sorted(found, key=lambda passed: (passed.event, passed.text)))


def page() -> str:
    """The text of docs/reference/messages.md."""
    lines, event = [_HEAD], ""
    for passed in passed_texts():
        if passed.event != event:
            lines += [""] * bool(event) + [f"## {passed.event}", ""]
            event = passed.event
        lines.append("* " + " ".join(passed.text.split()))
    return "\n".join(lines) + "\n"


def _in(tree: ast.Module) -> Iterator[PassedText]:
    functions = [node for node in ast.walk(tree) if isinstance(node, _Function)]
    module = {**_returned(functions), **_texts(tree.body)}
    for function in functions:
        inside = [*ast.walk(function)]
        calls = [(node, _called(node)) for node in inside if isinstance(node, ast.Call)]
        if not any(name in _EVENT_OF for _, name in calls):
            continue
        statements = [n for n in inside if isinstance(n, ast.stmt) and n is not function]
        scope = ChainMap(_texts(statements), module)
        for node, name in calls:
            if name in _EVENT_OF and node.args:
                text = _text(node.args[0], scope)
                if not re.fullmatch(r"\{[^}]*\}\.?", text):
                    yield PassedText(_EVENT_OF[name], text)


def _called(call: ast.Call) -> str:
    """The name of what is called, with ``self.`` before a method; empty where it has none."""
    match call.func:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return f"self.{name}"
    return ""


def _texts(statements: Iterable[ast.AST]) -> dict[str, ast.expr]:
    """The texts, and the tuples of texts, to which statements give a name, and no other value."""
    nodes = [*statements]
    given = [
        (node.targets[0].id, node.value)
        for node in nodes
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and _is(node.value)
    ]
    if not given:
        return {}
    inside = {node for statement in nodes for node in ast.walk(statement)}
    names = Counter(
        n.id for n in inside if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    )
    return {name: value for name, value in given if names[name] == 1}


def _returned(functions: Iterable[_Function]) -> dict[str, ast.expr]:
    """What functions give that only make a text, by the name of each."""
    found = {}
    for function in functions:
        last = function.body[-1]
        others = sum(isinstance(node, ast.Return) for node in ast.walk(function)) - 1
        if isinstance(last, ast.Return) and last.value and not others and _is(last.value):
            found[function.name] = last.value
    return found


def _is(node: ast.expr) -> bool:
    """Whether it is a text, or a tuple of texts."""
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(map(_is, node.elts))
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _text(node: ast.expr, scope: _Scope) -> str:
    match node:
        case ast.Constant():
            return str(node.value)
        case ast.JoinedStr():
            return "".join(_text(value, scope) for value in node.values)
        case ast.FormattedValue(value=ast.Name() | ast.Call() | ast.Attribute() as value):
            return _text(value, scope)
        case (
            ast.Name(id=name)
            | ast.Call(func=ast.Name(id=name))
            | ast.Attribute(value=ast.Name(id="self"), attr=name)
        ) if name in scope and not isinstance(scope[name], ast.Tuple):
            return _text(scope[name], {key: text for key, text in scope.items() if key != name})
        case ast.FormattedValue() | ast.Name() | ast.Attribute() | ast.Call() | ast.Subscript():
            return "{" + _filled(node) + "}"
        case ast.BinOp(op=ast.Add()):
            return _text(node.left, scope) + _text(node.right, scope)
        case ast.IfExp():
            texts = [text for text in (_text(node.body, scope), _text(node.orelse, scope)) if text]
            return " *or* ".join(texts)
        case _:
            return "{…}"


def _filled(node: ast.expr) -> str:
    """What is filled in, by the words of its name."""
    value = node.value if isinstance(node, ast.FormattedValue) else node
    if isinstance(value, ast.Subscript):
        return _filled(value.value)
    if isinstance(value, ast.Call):
        return _filled(value.args[0]) if value.args else _filled(value.func)
    if isinstance(value, ast.Attribute | ast.Name):
        name = value.attr if isinstance(value, ast.Attribute) else value.id
        return re.sub(r"_+", " ", name).strip().lower()
    return "…"


if __name__ == "__main__":
    sys.stdout.write(page())
