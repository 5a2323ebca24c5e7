"""The table of checks that warn, on docs/runbook/warnings.md, names those of the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from scripts.check_warnings import CHECK_WARNINGS
from tests.support.source_trees import nodes

ROOT = Path(__file__).parents[3]
CHECKS = sorted((ROOT / "replicator" / "checks").rglob("*.py"))


def names_in(argument: ast.expr) -> Iterator[str]:
    """The texts that the first argument of a call can be."""
    if isinstance(argument, ast.IfExp):
        yield from names_in(argument.body)
        yield from names_in(argument.orelse)
    else:
        assert isinstance(argument, ast.Constant), f"line {argument.lineno}: a constant, please"
        yield str(argument.value)


def calls(files: list[Path]) -> Iterator[tuple[ast.Call, Path]]:
    for file in files:
        for node in nodes(file):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield node, file


def of_checks() -> set[str]:
    """The names of the checks that can end in a warning."""
    found: set[str] = set()
    for file in CHECKS:
        text = file.read_text(encoding="utf-8")
        aliased = "= _PLACE.failed if" in text
        for call, _ in calls([file]):
            made = ast.unparse(call.func)
            if made.endswith(("lace.warning", "PLACE.warning", "CheckedPart('task').warning")):
                found |= set(names_in(call.args[0]))
        if aliased:
            found |= set(re.findall(r'\bmake\(\s*"(\w+)"', text))
    return found


def test_every_check_that_warns_has_its_reason() -> None:
    found = of_checks()
    assert {"server_id", "schema_of_shard_tables"} <= found
    assert [warning.check for warning in CHECK_WARNINGS if warning.check not in found] == []
    assert sorted(warning.check for warning in CHECK_WARNINGS) == sorted(found)
