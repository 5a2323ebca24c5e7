"""The progress of a pass over a target's rows, saved in a meta table."""

from __future__ import annotations

from dataclasses import replace

from attrs import define, field

from actors.comparing.kept_comparison import (
    KeptComparison,
    UnfinishedTarget,
    as_text,
    from_text,
)
from replicator.downstream.meta.reconciliations import Reconciliation, ReconciliationStore
from replicator.downstream.meta.validation.verifications import VerificationStore
from replicator.failpoints import Failpoint, reach
from replicator.mysql.names import TableName
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
        kept = _unfinished(self._entry.progress, asked)
        if kept is not None and kept.current is not None:
            self._resumed = kept.current.result.repaired
        return kept

    async def save(self, kept: KeptComparison) -> None:
        """Save the pass, without rows that are shown to people."""
        if kept.current is None:
            return
        corrected = self.corrected(kept.current.result)
        await self._store.save(self._entry, _text_of(kept.asked, kept.current), corrected)
        reach(Failpoint.RECONCILING_SAVED)

    async def remove(self) -> None:
        """Do nothing: the entry is removed when the pass is evaluated."""

    def corrected(self, result: TargetComparison) -> int:
        """Return how many rows all passes of the entry have corrected."""
        return self._entry.corrected + self.newly_corrected(result)

    def newly_corrected(self, result: TargetComparison) -> int:
        """Return how many rows this process has corrected in the pass."""
        return max(0, result.repaired - self._resumed)


@define(eq=False)
class KeptVerification:
    """Keeps the comparison of one verification, as `KeptPass` does."""

    _store: VerificationStore
    _target: TableName
    _progress: str
    """What was saved of it."""

    async def load(self, asked: str) -> KeptComparison | None:
        """Return the saved part; None if it begins, or was planned otherwise."""
        return _unfinished(self._progress, asked)

    async def save(self, kept: KeptComparison) -> None:
        """Save how far it is."""
        if kept.current is not None:
            await self._store.save_progress(self._target, _text_of(kept.asked, kept.current))
            reach(Failpoint.VERIFICATION_SAVED)

    async def remove(self) -> None:
        """Do nothing: its end replaces what is saved."""


def _unfinished(text: str, asked: str) -> KeptComparison | None:
    kept = from_text(text) if text else None
    return None if kept is None or kept.asked != asked or kept.current is None else kept


def _text_of(asked: str, current: UnfinishedTarget) -> str:
    """A pass as text, without rows that are shown to people."""
    result = replace(current.result, ranges=[], examples=[])
    return as_text(KeptComparison(asked, current=replace(current, result=result)))
