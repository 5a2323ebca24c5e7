"""docs/logs.md lists every event that is logged."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEVELS = {"debug", "info", "warning", "error", "exception"}


def events(source: str) -> Iterator[str]:
    """The constant first arguments of calls to a logger, and of faults."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        logged = (
            isinstance(node.func, ast.Attribute)
            and node.func.attr in LEVELS
            and ast.unparse(node.func.value).endswith(("log", "get_logger()"))
        )
        fault = isinstance(node.func, ast.Name) and node.func.id == "FatalError"
        first = node.args[0]
        choices = [first.body, first.orelse] if isinstance(first, ast.IfExp) else [first]
        if logged or fault:
            for choice in choices:
                if isinstance(choice, ast.Constant) and isinstance(choice.value, str):
                    yield choice.value


def test_every_event_is_documented() -> None:
    documented = (ROOT / "docs" / "logs.md").read_text()
    files = [ROOT / "cli.py", *ROOT.glob("actors/**/*.py"), *ROOT.glob("replicator/**/*.py")]
    found = {event for file in files for event in events(file.read_text())}
    assert "source.connected" in found
    missing = sorted(event for event in found if f"`{event}`" not in documented)
    assert not missing, f"say in docs/logs.md what these mean: {', '.join(missing)}"
