"""docs/inside/threat-model.md has a test for every line, and names none that does not exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "inside" / "threat-model.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| attacker |")
]
ACTORS = {"local user", "source", "target", "network", "executor", "operator"}


def test_everyone_has_a_line() -> None:
    assert {row[0] for row in ROWS} >= ACTORS


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}: {row[1]}")
def test_a_line_is_whole_and_its_tests_exist(row: list[str]) -> None:
    assert len(row) == 5
    assert all(row)
    named = re.findall(r"`(tests/[^`]+)`", row[-1])
    assert named
    for name in named:
        path, _, function = name.partition("::")
        assert (ROOT / path).is_file(), f"{path} does not exist"
        if function:
            assert function in functions(ROOT / path), f"{path} has no {function}"


def functions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}
