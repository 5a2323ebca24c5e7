"""Every command that a message or a page tells is one that the command line accepts."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from cli import app
from tests.support.source_trees import nodes

ROOT = Path(__file__).parents[3]
IN_WORDS = re.compile(r"`replicator ([a-z][^`]*)`")
IN_BLOCK = re.compile(r"^(?:\$ |sudo )?replicator ([a-z].*)$", re.MULTILINE)
PLACEHOLDER = re.compile(r"\{[^{}]*\}|[A-Z]+(?:\.[A-Z]+)?:[A-Z]+|…")
"""What stands for something in what a page tells."""
GENERATED = ("cli.md", "messages.md")
COMMANDS = typer.main.get_command(app)


def text_of(node: ast.expr) -> str:
    """A text of a module, with ``X`` where something is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) for part in node.values)
    return "X" if isinstance(node, ast.FormattedValue) else ""


def in_modules() -> Iterator[tuple[str, str]]:
    for folder in ("actors", "replicator", "config"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in nodes(path):
                if isinstance(node, ast.expr):
                    for told in IN_WORDS.findall(text_of(node)):
                        yield f"{path.relative_to(ROOT)}:{node.lineno}", told


def in_pages() -> Iterator[tuple[str, str]]:
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if path.name not in GENERATED:
            text = re.sub(r"\\\n\s*", "", path.read_text(encoding="utf-8"))
            for told in (*IN_WORDS.findall(text), *IN_BLOCK.findall(text)):
                yield str(path.relative_to(ROOT)), told


def complaint(told: str) -> str:
    """What is wrong with a command; empty where nothing is."""
    plain = re.sub(r"  +.*|\s+#.*|[>|&].*| / .*", "", " ".join(told.split("\n")))
    words = shlex.split(PLACEHOLDER.sub("X", re.sub(r"[\[\]]", "", plain)))
    command = COMMANDS
    while isinstance(command, TyperGroup) and words and words[0] != "X":
        name = words.pop(0)
        if name not in command.commands:
            return f"there is no command {name}"
        command = command.commands[name]
    if isinstance(command, TyperGroup):
        return ""
    if words and words[0].startswith("-"):
        known = {name for parameter in command.params for name in parameter.opts}
        return ", ".join({w for w in words if w.startswith("-")} - known - {"--help"})
    try:
        if words:
            command.make_context(command.name, words)
    except typer.Exit:
        return ""
    except TyperException as error:
        # What a text fills in may hold options.
        return str(error).removesuffix("Got unexpected extra argument(s) (X)")
    return ""


def test_every_command_that_is_told_is_accepted() -> None:
    told = [*in_modules(), *in_pages()]
    assert len(told) > 200
    wrong = {f"{place}: replicator {text}": complaint(text) for place, text in told}
    assert {place: why for place, why in wrong.items() if why} == {}


@pytest.mark.parametrize("text", ["retry TASK", "resume TASK --tables a", "binlog jump TASK"])
def test_what_is_not_accepted_is_found(text: str) -> None:
    assert complaint(text)
