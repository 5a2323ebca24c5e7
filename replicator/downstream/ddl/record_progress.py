"""Write-ahead records, whose ``state`` shows the progress of their execution."""

from __future__ import annotations

from dataclasses import dataclass

from replicator.downstream.meta.decisions import DECIDED

PENDING = "pending"
"""The first statement is about to run, or runs; ``pending:1`` … for further statements."""

SINGLE = "single"
"""``single:0`` …: the same for the single changes of a statement that the target refuses as a
whole."""

DONE = "done"
"""All statements have run."""

REFUSED = "refused"
"""``refused:1`` …: the target has refused this single change, and has executed the earlier ones."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The next statement of a record.

    Attributes:
        number: its number, from 0.
        single: whether the numbers count the single changes of a statement.
        begun: whether it may run already.
    """

    number: int = 0
    single: bool = False
    begun: bool = False

    @property
    def state(self) -> str:
        """The ``state`` of the record. Raises ValueError if no record can have this progress."""
        if self.single:
            return f"{SINGLE if self.begun else REFUSED}:{self.number}"
        if not self.begun:
            raise ValueError("a record is opened when its statement begins")
        return f"{PENDING}:{self.number}" if self.number else PENDING

    @property
    def next(self) -> Progress:
        """The progress after this statement has run."""
        return Progress(self.number + 1, self.single)


def read_progress(state: str) -> Progress:
    """Return the progress in the state of a record that is not done."""
    if state == DECIDED:
        return Progress()
    word, _, number = state.partition(":")
    return Progress(int(number or 0), word in (SINGLE, REFUSED), word != REFUSED)


@dataclass(frozen=True, slots=True)
class DdlRecord:
    """The write-ahead record of an event."""

    version: int
    state: str
    fingerprint: str
    entry: str
