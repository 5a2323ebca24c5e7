"""The outcome of one check."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["passed", "warning", "failed"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found.

    ``name`` is one of `replicator.checks.check_items.CHECKS`, ``where`` a source id, ``target`` or
    ``task``. ``remedies`` is what an operator can paste or do, one text for each way; a failed
    result always has one, a passed one none.
    """

    name: str
    where: str
    state: State
    finding: str
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedPart:
    """Makes the results of one source, of the target or of the task."""

    where: str

    def passed(self, name: str, finding: str) -> CheckResult:
        """Nothing to do."""
        return CheckResult(name, self.where, "passed", finding)

    def warning(self, name: str, finding: str, *remedies: str) -> CheckResult:
        """The task can run; the operator should know."""
        return CheckResult(name, self.where, "warning", finding, remedies)

    def failed(self, name: str, finding: str, *remedies: str) -> CheckResult:
        """The task cannot run, or would lose or falsify rows."""
        return CheckResult(name, self.where, "failed", finding, remedies)
