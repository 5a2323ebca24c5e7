"""Cases of a test are named after what they show."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

import pytest

from tests.support.case_ids import LONGEST, case_id


class Kind(IntEnum):
    FIRST = 1


@dataclass(frozen=True)
class Row:
    number: int
    names: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (3, "v=3"),
        (None, "v=None"),
        ("text", "text"),
        (Kind.FIRST, "first"),
        (("a", 1), "['a', 1]"),
        ({"k": Kind.FIRST}, "{'k': first}"),
        ({"b", "a"}, "{'a', 'b'}"),
        (ValueError("no", 1), "ValueError('no', 1)"),
        (Row(1, ("x",)), "(1, ['x'])"),
    ],
)
def test_a_case_shows_its_values(value: object, name: str) -> None:
    assert case_id(value, "v") == name


@pytest.mark.parametrize("value", [iter([]), [iter([])], {"k": object()}, Row], ids=type)
def test_what_has_no_text_of_its_own_is_left_to_pytest(value: Iterator[int]) -> None:
    assert case_id(value, "v") is None


def test_long_values_are_shortened() -> None:
    name = case_id(["long"] * LONGEST, "v")
    assert name is not None
    assert len(name) == LONGEST


def test_every_process_finds_the_same_name_of_a_set() -> None:
    program = (
        "from tests.support.case_ids import case_id\n"
        "print(case_id(frozenset({'a', 'b', 'c', 'd'}), 'v'))"
    )
    names = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert names == {"{'a', 'b', 'c', 'd'}\n"}
