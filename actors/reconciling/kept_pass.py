"""The progress of a pass over a target's rows, saved with its entry in the queue."""

from __future__ import annotations

from dataclasses import replace

from attrs import define, field

from actors.comparing.kept_comparison import KeptComparison, as_text, from_text
from replicator.downstream.meta.reconciliations import Reconciliation, ReconciliationStore
from replicator.failpoints import Failpoint, reach
from replicator.pipeline.compare.findings import TargetComparison


@define(eq=False)
class KeptPass:
    """Keeps the comparison of one pass; a `actors.comparing.kept_comparison.ComparisonKeeper`."""

    _store: ReconciliationStore
    _entry: Reconciliation
    _resumed: int = field(default=0, init=False)
    """The rows that the saved part of the pass has corrected."""

    async def load(self, asked: str) -> KeptComparison | None:
        """Return the saved part of the pass; None if it begins, or was planned otherwise."""
        kept = from_text(self._entry.progress) if self._entry.progress else None
        if kept is None or kept.asked != asked or kept.current is None:
            return None
        self._resumed = kept.current.result.repaired
        return kept

    async def save(self, kept: KeptComparison) -> None:
        """Save the pass, without rows that are shown to people."""
        if kept.current is None:
            return
        result = replace(kept.current.result, ranges=[], examples=[])
        current = replace(kept.current, result=result)
        text = as_text(KeptComparison(kept.asked, current=current))
        await self._store.save(self._entry, text, self.corrected(result))
        reach(Failpoint.RECONCILING_SAVED)

    async def remove(self) -> None:
        """Do nothing: the entry is removed when the pass is evaluated."""

    def corrected(self, result: TargetComparison) -> int:
        """Return how many rows all passes of the entry have corrected."""
        return self._entry.corrected + self.newly_corrected(result)

    def newly_corrected(self, result: TargetComparison) -> int:
        """Return how many rows this process has corrected in the pass."""
        return max(0, result.repaired - self._resumed)
