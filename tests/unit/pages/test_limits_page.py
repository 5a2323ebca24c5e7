"""docs/reference/limits.md has the limits and sizes of the program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from config.models import Source, Task
from config.processing import Limits, Writer
from replicator.memory import MIB, memory_defaults

PAGE = (Path(__file__).parents[3] / "docs/reference/limits.md").read_text(encoding="utf-8")
GIB = 1024 * MIB
UNITS = {"KiB": 1 << 10, "MiB": MIB, "GiB": GIB}


def takes(model: type[BaseModel], key: str, value: int | str) -> bool:
    """Whether a section of the task file takes a value, beside what it needs."""
    try:
        model.model_validate({key: value})
    except ValidationError as error:
        return all(found["loc"] != (key,) for found in error.errors())
    return True


def row(name: str) -> str:
    found = re.search(rf"^\| {re.escape(name)} \| (.+) \|$", PAGE, re.MULTILINE)
    assert found is not None, name
    return found[1]


def sizes(text: str) -> list[int]:
    return [int(n) * UNITS[unit] for n, unit in re.findall(r"(\d+) ([KMG]iB)", text)]


@pytest.mark.parametrize("gib", [1, 2, 4, 8])
def test_sizes_follow_from_the_memory_as_the_page_says(gib: int) -> None:
    found = memory_defaults(gib * GIB)
    name = f"{gib} GiB and more" if gib == 8 else f"{gib} GiB"
    assert sizes(row(name)) == [found.batch_bytes, found.largest_event, found.java_heap]
    if gib == 8:
        assert memory_defaults(64 * GIB) == found


@pytest.mark.parametrize(
    ("name", "model", "key"),
    [
        ("`writer.batch-bytes`", Writer, "batch-bytes"),
        ("an event, a row, the answer to a look-up", Limits, "largest-event"),
    ],
)
def test_sizes_that_the_task_file_takes(name: str, model: type[BaseModel], key: str) -> None:
    *least, most = sizes(row(name))
    assert takes(model, key, most)
    assert not takes(model, key, most + 1)
    for size in least:
        assert takes(model, key, size)
        assert not takes(model, key, size - 1)


def test_numbers_and_names_that_the_task_file_takes() -> None:
    (most,) = re.findall(r"^(\d+) characters", row("name of a task"))
    assert takes(Task, "name", "x" * int(most))
    assert not takes(Task, "name", "x" * (int(most) + 1))
    (most,) = re.findall(r"^(\d+) characters", row("`source-id`"))
    assert takes(Source, "source-id", "x" * int(most))
    assert not takes(Source, "source-id", "x" * (int(most) + 1))
    low, high = map(int, row("`writer.buckets`").split(" to "))
    assert [takes(Writer, "buckets", n) for n in (low - 1, low, high, high + 1)] == [
        False,
        True,
        True,
        False,
    ]
