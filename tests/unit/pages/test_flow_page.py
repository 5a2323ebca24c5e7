"""docs/flow.md names only what is there: modules, rooms, and what they define."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "flow.md").read_text(encoding="utf-8")
PICTURES = "\n".join(re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
MODULES = [path for top in ("actors", "replicator") for path in (ROOT / top).rglob("*.py")]
NO_CLASSES = {"Spark", "DDL"}


def defined(path: Path) -> set[str]:
    """The functions and classes of a module."""
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, kinds)}


def rows() -> list[tuple[str, list[str]]]:
    found = re.findall(r"^\| [^|]+ \| `([^`]+)` \| ([^|]+) \|$", PAGE, re.MULTILINE)
    return [(module, re.findall("`([^`]+)`", names)) for module, names in found]


def test_the_tables_are_found() -> None:
    assert len(rows()) == PAGE.count("\n| ") - PAGE.count("\n| step ")


@pytest.mark.parametrize(("module", "names"), rows(), ids=lambda value: str(value))
def test_a_step_is_where_the_table_says(module: str, names: list[str]) -> None:
    assert (ROOT / module).is_file()
    assert set(names) - defined(ROOT / module) == set()


def test_the_rooms_in_the_pictures_exist() -> None:
    rooms = re.findall(r"(?:actors|replicator)/[a-z_/]*", PICTURES)
    assert len(rooms) > 10
    assert [room for room in rooms if not (ROOT / room).exists()] == []


def test_the_modules_in_the_pictures_exist() -> None:
    named = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", PICTURES))
    assert len(named) > 10
    assert named - {path.stem for path in MODULES} == set()


def test_what_passes_between_modules_is_a_class() -> None:
    named = set(re.findall(r"\b[A-Z][A-Za-z]+\b", PICTURES)) - NO_CLASSES
    classes = {name for path in MODULES for name in defined(path)}
    assert len(named) > 10
    assert named - classes == set()
