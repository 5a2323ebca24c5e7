"""What those who write to the target must find there, and what it means when they do not.

A run of a task draws a token when it begins and puts it into every row that a writer locks before
it writes. Whoever finds another token there, or less than this run has left, must not write: either
another run has taken the task over, or the target has lost its last commits. Which of the two it
is, `replicator.downstream.meta.lease` tells. Plain data, so that it travels to executors.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fence:
    """``token`` is that of the run; ``lease_table`` is the quoted name of where it comes from."""

    lease_table: str
    token: int


@dataclass(frozen=True, slots=True)
class Mismatch:
    """What should be on the target, and what is there; ``bucket`` is None where it is of none."""

    what: str
    expected: str
    found: str
    target: str = ""
    bucket: int | None = None

    def __str__(self) -> str:
        where = f" of {self.target}" if self.target else ""
        part = f", bucket {self.bucket}" if self.bucket is not None else ""
        return f"{self.what}{where}{part}: {self.expected} was left there, {self.found} is found"


class FencedError(Exception):
    """The target does not hold what this run has left there; nothing was written."""

    def __init__(self, mismatch: Mismatch) -> None:
        super().__init__(str(mismatch))
        self.mismatch = mismatch

    def __reduce__(self) -> tuple[type[FencedError], tuple[Mismatch]]:
        return FencedError, (self.mismatch,)
