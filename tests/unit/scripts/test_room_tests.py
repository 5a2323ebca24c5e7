"""Which tests `make room` runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.room_tests import MOST_NEAREST, distances, main, nearest
from tests.support.source_trees import imports

IMPORTED = {
    "actors.writing.batches": {"actors.mailbox"},
    "actors.writing": set[str](),
    "actors.writing_notes": set[str](),
    "actors.mailbox": set[str](),
    "actors.task": {"actors.writing.batches"},
    "tests.support.running": {"actors.task"},
    "tests.integration.test_near": {"actors.writing.batches", "tests.support.running"},
    "tests.integration.test_far": {"tests.support.running"},
    "tests.integration.test_apart": {"actors.mailbox", "actors.writing_notes"},
}


def test_the_distance_is_the_smallest_number_of_imports() -> None:
    found = distances(IMPORTED, "actors.writing")
    tests = {name: n for name, n in found.items() if name.startswith("tests.integration.")}
    assert tests == {"tests.integration.test_near": 1, "tests.integration.test_far": 3}


def test_modules_that_import_each_other_end() -> None:
    assert distances({"a": {"b"}, "b": {"a"}}, "a") == {"a": 0, "b": 1}


def test_tests_of_the_next_distance_are_added_while_they_are_few() -> None:
    few = {"one": 1, "two": 2}
    many = {f"far {n}": 3 for n in range(MOST_NEAREST)}
    assert nearest(few | many) == ["one", "two"]
    assert nearest(many) == sorted(many)
    assert nearest({}) == []


def test_imports_are_found_wherever_they_are(tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    path.write_text(
        "import a.b\nfrom a import (\n    c,\n    d as other,\n)\n"
        "def later():\n    from e import thing\n    import f.g\n"
    )
    modules = {"a", "a.b", "a.c", "a.d", "e", "f", "f.g", "other"}
    assert sorted(imports(path, modules)) == ["a.b", "a.c", "a.d", "e", "f.g"]


def test_a_room_has_its_unit_tests_and_its_nearest_integration_tests(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main("actors/writing/") == 0
    printed = capsys.readouterr()
    first, *others = printed.out.splitlines()
    assert first == "tests/unit/actors/writing"
    assert "tests/integration/apply/test_locked_jobs.py" in others
    assert f"the nearest {len(others)} " in printed.err


@pytest.mark.parametrize("name", ["", "actors/writing.py", "nowhere", "docs"])
def test_a_name_that_is_no_room_is_an_error(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(name) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "is no room" in printed.err
