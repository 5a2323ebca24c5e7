"""How far the execution of a write-ahead record is, as its ``state`` says it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from replicator.downstream.meta.decisions import DECIDED

PENDING = "pending"
"""A statement is about to run, or runs: the first; ``pending:1`` … for further ones."""

SINGLE = "single"
"""``single:0`` …: the same for the single changes of a statement that the target refuses as one."""

REFUSED = "refused"
"""``refused:1`` …: the target has refused this one of the single changes, and has those before."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Which statement of a record is the next one, and whether it may run already (``begun``).

    ``single``: what is counted are the single changes of the statement.
    """

    number: int = 0
    single: bool = False
    begun: bool = False

    @property
    def state(self) -> str:
        """What the record says. Raises ValueError for what no record says."""
        if self.single:
            return f"{SINGLE if self.begun else REFUSED}:{self.number}"
        if not self.begun:
            raise ValueError("a record is opened when its statement begins")
        return f"{PENDING}:{self.number}" if self.number else PENDING

    @property
    def next(self) -> Progress:
        """Where this statement has run."""
        return Progress(self.number + 1, self.single)


def read_progress(state: str) -> Progress:
    """What a record's state says, of one that is not done."""
    if state == DECIDED:
        return Progress()
    word, _, number = state.partition(":")
    return Progress(int(number or 0), word in (SINGLE, REFUSED), word != REFUSED)
