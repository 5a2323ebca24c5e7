"""The problems of a task file, with all that is needed to fix them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: the file, the line (from 1; 0 without a line), the key, and the description."""

    file: str
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {self.key}: {self.message}" if self.key else f"{where}: {self.message}"


class TaskFileError(Exception):
    """A task file that can't be used; ``problems`` has every problem, by file and line."""

    def __init__(self, path: str, problems: Iterable[Problem]) -> None:
        self.path = path
        self.problems = tuple(sorted(problems, key=lambda p: (p.file != path, p.file, p.line)))
        super().__init__(path, self.problems)

    def __str__(self) -> str:
        count = len(self.problems)
        head = f"the task file {self.path} has {count} problem{'' if count == 1 else 's'}:"
        return "\n".join([head, *(f"  {problem}" for problem in self.problems)])


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice that is most similar to ``word``, ignoring case.

    Return None if none is similar.
    """
    by_lower = {choice.lower().replace("_", "-"): choice for choice in choices}
    wanted = word.lower().replace("_", "-")
    found = difflib.get_close_matches(wanted, by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return a closing clause that names the nearest choice; empty if there is none."""
    found = nearest(word, choices)
    return f"; did you mean `{found}`?" if found else ""
