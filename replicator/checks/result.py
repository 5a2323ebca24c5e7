"""The outcome of one check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["passed", "warning", "failed"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The findings of a check.

    ``name``: one of `replicator.checks.check_items.CHECKS`. ``where``: a source id, ``target`` or
    ``task``. ``remedies``: what an operator can paste or do, one text for each way; a failed result
    always has one, a passed one none.
    """

    name: str
    where: str
    state: State
    finding: str
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedPart:
    """Makes the results for one source, for the target or for the task."""

    where: str

    def passed(self, name: str, finding: str) -> CheckResult:
        """Return a result that requires no action."""
        return CheckResult(name, self.where, "passed", finding)

    def warning(self, name: str, finding: str, *remedies: str) -> CheckResult:
        """Return a result with which the task can run, but which the operator should know."""
        return CheckResult(name, self.where, "warning", finding, remedies)

    def failed(self, name: str, finding: str, *remedies: str) -> CheckResult:
        """Return a result with which the task cannot run, or would lose or falsify rows."""
        return CheckResult(name, self.where, "failed", finding, remedies)
