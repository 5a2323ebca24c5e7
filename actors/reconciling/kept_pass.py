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
    """Saves the comparison of one pass.

    This is a `actors.comparing.kept_comparison.ComparisonKeeper`.
    """

    _store: ReconciliationStore
    _entry: Reconciliation
    _resumed: int = field(default=0, init=False)
    """The rows that the saved part of the pass has corrected."""

    async def load(self, asked: str) -> KeptComparison | None:
        """Return the saved part of the pass; None if the pass is new, or its plan has changed."""
        kept = _unfinished(self._entry.progress, asked)
        if kept is not None and kept.current is not None:
            self._resumed = kept.current.result.repaired
        return kept

    async def save(self, kept: KeptComparison) -> None:
        """Save the pass, without the example rows of its results."""
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
    """Saves the comparison of one verification, as `KeptPass` does."""

    _store: VerificationStore
    _target: TableName
    _progress: str
    """The saved text of the verification."""

    async def load(self, asked: str) -> KeptComparison | None:
        """Return the saved part; None if the verification is new, or its plan has changed."""
        return _unfinished(self._progress, asked)

    async def save(self, kept: KeptComparison) -> None:
        """Save the progress of the verification."""
        if kept.current is not None:
            await self._store.save_progress(self._target, _text_of(kept.asked, kept.current))
            reach(Failpoint.VERIFICATION_SAVED)

    async def remove(self) -> None:
        """Do nothing: the end of the verification replaces the saved text."""


def _unfinished(text: str, asked: str) -> KeptComparison | None:
    kept = from_text(text) if text else None
    return None if kept is None or kept.asked != asked or kept.current is None else kept


def _text_of(asked: str, current: UnfinishedTarget) -> str:
    """Return a pass as text, without the example rows of its results."""
    result = replace(current.result, ranges=[], examples=[])
    return as_text(KeptComparison(asked, current=replace(current, result=result)))
