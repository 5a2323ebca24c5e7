"""The page of all messages of faults, made from the program's source.

``python -m scripts.messages_reference > docs/reference/messages.md`` writes it anew.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

_HEAD = """\
# Messages of faults

This page is made from the program (`python -m scripts.messages_reference`); don't edit it. It has
every message with which a part of a task stops, as the source has it: `{…}` stands for what is
filled in. The [runbook](../runbook/faults.md) has the cause and the remedies of each event.
"""

_FAULT = "FatalError"


@dataclass(frozen=True, slots=True)
class Message:
    """A fault where it is raised: its event, its text, and the remedies that stand beside it."""

    event: str
    text: str
    remedies: tuple[str, ...]


def messages() -> list[Message]:
    """All messages, by their events."""
    found = {message for path in sorted((ROOT / "actors").rglob("*.py")) for message in _in(path)}
    return sorted(found, key=lambda m: (m.event, m.text, m.remedies))


def page() -> str:
    """The text of docs/reference/messages.md."""
    lines, event = [_HEAD], ""
    for message in messages():
        if message.event != event:
            event = message.event
            lines += [f"## {event}", ""]
        lines += [f"> {line}" if line else ">" for line in message.text.splitlines()]
        lines += (
            [">", *(f"> * {remedy}" for remedy in message.remedies)] if message.remedies else []
        )
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _in(path: Path) -> Iterator[Message]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or ast.unparse(node.func) != _FAULT or len(node.args) < 2:
            continue
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        told = keywords.get("remedies")
        remedies = tuple(map(_text, told.elts)) if isinstance(told, ast.Tuple) else ()
        for event in _events(node.args[0]):
            yield Message(event, _text(node.args[1]), remedies)


def _events(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.IfExp):
        yield from _events(node.body)
        yield from _events(node.orelse)


def _text(node: ast.expr) -> str:
    match node:
        case ast.Constant():
            return str(node.value)
        case ast.JoinedStr():
            return "".join(map(_text, node.values))
        case ast.FormattedValue() | ast.Name() | ast.Attribute() | ast.Call() | ast.Subscript():
            return "{" + _filled(node) + "}"
        case ast.BinOp(op=ast.Add()):
            return _text(node.left) + _text(node.right)
        case ast.IfExp():
            return (
                f"{_text(node.body)} *or* {_text(node.orelse)}"
                if _text(node.orelse)
                else (_text(node.body))
            )
        case ast.Starred():
            return _text(node.value)
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
