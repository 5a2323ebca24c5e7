"""Where the structure that is held for a shard comes from: what makes it known, or a guess."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from replicator.schema.structure.structure import Table


class Provenance(StrEnum):
    """Where a structure comes from. All but a guess are known."""

    READ = "read"
    """From the server, and no statement of the binlog that may change it stands in between."""
    LEARNED = "learned"
    """From a statement of the binlog, executed on a known structure or creating the table."""
    TOLD = "told"
    """From the operator."""
    GUESSED = "guessed"
    """Anything else."""


@dataclass(frozen=True, slots=True)
class Held:
    """What is held for a member at a place of its binlog.

    ``structure`` is None for a table that is gone, or where there is not even a guess. ``doubt``
    says why a guess is no more than that.
    """

    structure: Table | None
    provenance: Provenance
    doubt: str = ""

    @property
    def known(self) -> bool:
        """Whether rows may be read with it, whatever their events tell."""
        return self.provenance is not Provenance.GUESSED

    @property
    def certain(self) -> Table | None:
        """The structure where it is known."""
        return self.structure if self.known else None


GONE = Held(None, Provenance.LEARNED)
"""Of a table that was dropped, or has another name now."""

UNSEEN = Held(
    None,
    Provenance.GUESSED,
    "it was not there when the task first looked at its source, and no statement that creates it"
    " was read since",
)
"""Of a table that rows are met of, and nothing else."""


def guess(structure: Table | None, doubt: str) -> Held:
    """A structure that is not certain, or none; ``doubt`` says why."""
    return Held(structure, Provenance.GUESSED, doubt)
