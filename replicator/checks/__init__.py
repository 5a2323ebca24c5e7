"""What is looked at before a task starts: each finding with its ways out."""

from replicator.checks.items import CHECKS, unknown_items
from replicator.checks.result import CheckResult, State
from replicator.checks.run import run_checks
from replicator.checks.source import check_source
from replicator.checks.structures import check_structures
from replicator.checks.target import check_target
from replicator.checks.task import SourceToCheck, TargetToCheck, TaskToCheck

__all__ = [
    "CHECKS",
    "CheckResult",
    "SourceToCheck",
    "State",
    "TargetToCheck",
    "TaskToCheck",
    "check_source",
    "check_structures",
    "check_target",
    "run_checks",
    "unknown_items",
]
