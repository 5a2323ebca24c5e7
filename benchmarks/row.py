"""What the rows of the benchmark have in common: each prepares once, and measures several times."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.sizes import Sizes

TIMES = "\N{MULTIPLICATION SIGN}"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: the figure ``key`` of a row.

    ``against``: what it is measured against in the same run. ``unit``: `TIMES`, ``s``, ``%`` or
    ``MiB``.
    """

    key: str
    workload: str
    against: str
    goal: float
    floor: float
    unit: str = TIMES
    lower_is_better: bool = False

    def reaches(self, value: float, limit: float) -> bool:
        """Whether a value is as good as a goal or a floor."""
        return value <= limit if self.lower_is_better else value >= limit


@dataclass(frozen=True, slots=True)
class Measured:
    """One measurement: the figure of each of the row's lines, and all that they come from.

    ``raw`` is what JSON knows; the units are part of the names or stand where it is made.
    """

    figures: Mapping[str, float]
    raw: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Context:
    """What a row is measured with: sizes, a folder for its files, more of the task file."""

    sizes: Sizes
    folder: Path
    settings: Mapping[str, Any]


Measure = Callable[[], Measured]
"""Measures once; each time target and shards are compared."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row that can be measured alone, by its name.

    ``prepare`` starts servers and writes what is to be caught up with; they live until the block
    that it opens ends.
    """

    name: str
    lines: tuple[Line, ...]
    prepare: Callable[[Context], AbstractContextManager[Measure]]
