"""Evaluates a pass of a reconciliation, which is a comparison that corrects rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from replicator.mysql.names import folded
from replicator.pipeline.compare.findings import TargetComparison

FIRST_PAUSE, LONGEST_PAUSE = 2.0, 600.0
"""Seconds between two passes over the same rows."""

FAILED_SECONDS = 600.0
"""Seconds after which servers that can't be read count as a failure."""

FAILED_PASSES = 3
"""Number of passes in a row after which rows that still differ count as a failure."""


class Outcome(StrEnum):
    """The outcome of a pass."""

    DONE = "done"
    UNREAD = "unread"
    """A server could not be read; the next pass continues."""
    WAITS = "waits"
    """Something else must end first, such as a schema change; then another pass begins."""
    AGAIN = "again"
    """Rows differ that are not held; another pass begins."""
    SHARED = "shared"
    """Shards have several rows with one key."""
    REFUSED = "refused"
    """The target refuses rows of its shards."""
    UNOWNED = "unowned"
    """Rows of the target may be wrong, but no pass may change them."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a pass, with its reason."""

    outcome: Outcome
    reason: str = ""


def verdict_of(
    result: TargetComparison, columns: Collection[str], *, held: str, strictly: bool = False
) -> Verdict:
    """Evaluate a pass.

    Args:
        result: the differences that the pass found and corrected.
        columns: the columns that had to be compared; empty for all comparable columns.
        held: why rows of the target wait now; empty if none waits.
        strictly: whether rows that the pass may not change can be wrong. Such rows are differences
            caused by filters, and rows that only the target has and that may not be its shards'.
    """
    if result.failure and held and not result.refused:
        # The structures may be different until the schema change has ended.
        return Verdict(Outcome.WAITS, held)
    if result.failure:
        return Verdict(Outcome.REFUSED if result.refused else Outcome.UNREAD, result.failure)
    waits = result.blocked or held or _uncompared(result, columns)
    if not waits and (rows := result.held + result.unsettled):
        waits = f"{rows:,} rows are still to be applied"
    if waits:
        return Verdict(Outcome.WAITS, waits)
    if (left := result.differing - result.repaired - result.untouched) > 0:
        outcome = Outcome.SHARED if result.duplicate_keys else Outcome.AGAIN
        return Verdict(outcome, "; ".join([f"{left:,} rows differ", *result.remarks]))
    if strictly and result.untouched:
        why = f"{result.untouched:,} rows differ that no reconciliation may change"
        return Verdict(Outcome.UNOWNED, "; ".join([why, *result.remarks]))
    return Verdict(Outcome.DONE)


def _uncompared(result: TargetComparison, columns: Collection[str]) -> str:
    """Return why a column that both sides have could not be compared.

    The result is empty if all were compared.
    """
    names = {folded(column) for column in columns}
    for out in result.left_out:
        if folded(out.column) in names and not out.absent:
            return f"{out.column} can't be compared: {out.why}"
    return ""


@dataclass(frozen=True, slots=True)
class Attempts:
    """The passes over the rows of an entry that have not ended it.

    Attributes:
        asked: the request for which the passes were made.
        last: the verdict on the last pass; None before the first one.
        passes: number of passes in a row with the outcome of the last one.
        since: when the first of these passes ended, in seconds.
        due: when the next pass may begin.
    """

    asked: int
    last: Verdict | None = None
    passes: int = 0
    since: float = 0.0
    due: float = 0.0

    def after(self, verdict: Verdict, moment: float) -> Attempts:
        """Return the attempts after another pass, which ended at a moment."""
        same = self.last is not None and self.last.outcome is verdict.outcome
        passes = self.passes + 1 if same else 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(passes - 1, 16))
        since = self.since if same else moment
        return Attempts(self.asked, verdict, passes, since, moment + pause)

    @property
    def failed(self) -> bool:
        """Whether the operator must act."""
        match self.last:
            case Verdict(Outcome.REFUSED | Outcome.UNOWNED):
                return True
            case Verdict(Outcome.UNREAD):
                return self.due - self.since > FAILED_SECONDS
            case Verdict(Outcome.AGAIN | Outcome.SHARED):
                return self.passes >= FAILED_PASSES
        return False

    @property
    def waits(self) -> bool:
        """Whether the last pass has found that rows wait."""
        return self.last is not None and self.last.outcome is Outcome.WAITS
