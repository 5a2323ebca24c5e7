"""Unit tests can be found: their folders are the rooms, their names modules or scenarios.

The tests of `pages` compare pages with the whole program, so they belong to no room.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.source_trees import imports, module_name, tree

ROOT = Path(__file__).parents[3]
UNIT = ROOT / "tests/unit"
TOPS = ("replicator", "actors", "config", "scripts", "benchmarks", "tests")
MODULES = {
    module_name(path, ROOT): path
    for path in [ROOT / "cli.py", *(path for top in TOPS for path in (ROOT / top).rglob("*.py"))]
}
PRODUCT = [path for path in MODULES.values() if UNIT not in path.parents]
TESTS = sorted(path for path in UNIT.rglob("*.py") if path.parent != UNIT / "pages")


def room_of(test: Path) -> Path:
    """The folder whose modules a unit test is about."""
    return ROOT / test.parent.relative_to(UNIT)


def test_the_tests_are_found() -> None:
    assert len(TESTS) > 200


def test_every_folder_is_a_room() -> None:
    rooms = {path.parent for path in PRODUCT}
    assert {str(test) for test in TESTS if room_of(test) not in rooms} == set()


@pytest.mark.parametrize("test", [str(path.relative_to(UNIT)) for path in TESTS])
def test_a_name_is_that_of_a_module_of_the_room_or_of_a_scenario(test: str) -> None:
    path = UNIT / test
    room, name = room_of(path), path.stem.removeprefix("test_")
    if (room / f"{name}.py").exists():
        return
    outside = (at for at in PRODUCT if ROOT / "tests" not in at.parents)
    others = {str(at.relative_to(ROOT)) for at in outside if at.stem == name}
    assert others == set(), "the test has the name of a module of another room"
    assert not name.startswith(f"{room.name}_"), "the name repeats the folder"
    assert ast.get_docstring(tree(path)), "a scenario is described by the module's docstring"


@pytest.mark.parametrize("test", [str(path.relative_to(UNIT)) for path in TESTS])
def test_it_imports_a_module_of_its_room(test: str) -> None:
    """At least through the tests beside it, with which it shares what is set up."""
    path = UNIT / test
    used = {MODULES[name].parent for name in imports(path, MODULES)}
    assert {room_of(path), path.parent} & used
