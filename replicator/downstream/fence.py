"""The fence: the token that each writer must find on the target before it writes.

A run of a task draws a token when it begins and writes it into every row that a writer locks before
it writes. A writer that finds another token, or less progress than this run has saved, must not
write: either another run has taken the task over, or the target has lost its last commits.
`replicator.downstream.meta.lease` distinguishes the two. Plain data, because it is sent to
executors.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fence:
    """The fence of a run.

    Attributes:
        lease_table: quoted name of the table that holds the token.
        token: the run's token.
    """

    lease_table: str
    token: int


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A difference between the state that this run saved on the target and the state found there.

    Attributes:
        what: a name of the saved value, for messages.
        target: empty if the mismatch concerns no target.
        bucket: None if the mismatch concerns no bucket.
    """

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
    """The target does not hold the state that this run saved; nothing was written."""

    def __init__(self, mismatch: Mismatch) -> None:
        super().__init__(str(mismatch))
        self.mismatch = mismatch

    def __reduce__(self) -> tuple[type[FencedError], tuple[Mismatch]]:
        return FencedError, (self.mismatch,)
