"""docs/inside/flow.md names only what is there: modules, rooms, and what they define."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support.source_trees import tree

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "inside" / "flow.md").read_text(encoding="utf-8")
PICTURES = "\n".join(re.findall(r"^```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL))
MODULES = [path for top in ("actors", "replicator") for path in (ROOT / top).rglob("*.py")]
NO_CLASSES = {"Spark", "DDL"}


def defined(path: Path) -> set[str]:
    """The functions and classes of a module."""
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return {node.name for node in tree(path).body if isinstance(node, kinds)}


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


FIRST_SHAPES = {"RowColumns", "RowEvents", "Lines", "RowBlock", "NetChanges"}
"""What holds row events or rows by itself; the others have fields or bases of these."""


def named_types(node: ast.ClassDef) -> set[str]:
    """The names in the annotations of a class's fields, and those of its bases."""
    fields = (part.annotation for part in node.body if isinstance(part, ast.AnnAssign))
    parts = (part for top in (*fields, *node.bases) for part in ast.walk(top))
    return {part.id for part in parts if isinstance(part, ast.Name)}


def records() -> dict[str, set[str]]:
    """The public dataclasses and named tuples of the product, with the types that they name."""
    classes = [
        node
        for path in MODULES
        for node in tree(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    return {
        node.name: named_types(node)
        for node in classes
        if any("dataclass" in ast.unparse(one) for one in node.decorator_list)
        or "NamedTuple" in map(ast.unparse, node.bases)
    }


def test_every_shape_of_a_row_is_in_its_table() -> None:
    section = PAGE.split("## The shapes of a row", 1)[1].split("\n## ", 1)[0]
    told = re.findall(r"^\|.*\| `([A-Za-z]+)` \|$", section, re.MULTILINE)
    shapes, public = FIRST_SHAPES, records()
    while more := {name for name, types in public.items() if types & shapes} - shapes:
        shapes = shapes | more
    assert sorted(told) == sorted(shapes)
    assert len(told) <= 10, "carry rows in one of the shapes that are there"
