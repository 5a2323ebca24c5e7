"""The runbook has every fault that can block something, with its remedies; a page the status."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from actors.writing import job_runner
from replicator.events.all_events import EVENTS, FaultSection
from replicator.pipeline.apply.batch import WriteOutcome
from replicator.status import (
    BinlogDistance,
    BlockedPart,
    CopyStatus,
    Fault,
    HeldAtSource,
    LockClaim,
    LockConflict,
    LockSource,
    LockStatus,
    SourceStatus,
    TargetStatus,
    TaskStatus,
    ValidationStatus,
    WriterStatus,
)
from scripts.events_reference import faults_page
from tests.support.source_trees import nodes
from tests.support.tasks.remedies import executed, named

ROOT = Path(__file__).parents[3]
RUNBOOK = ROOT / "docs" / "runbook" / "faults.md"
STATUS = ROOT / "docs" / "reference" / "status.md"
ACTORS = sorted((ROOT / "actors").rglob("*.py"))
NO_FAULTS = {
    WriteOutcome.DONE,
    WriteOutcome.CHANGED,
    WriteOutcome.UNREACHABLE,
    WriteOutcome.LOCKED,
    WriteOutcome.OUT_OF_STEP,
}
MAKES_ONE = {"self._source_fault": "source", "row_fault": "target"}
"""What makes faults of a source or a target, by their events."""
GIVEN = {"failover_event", "row_event"}
"""The names of the events that these are given."""
WORDS = re.compile(r"of_target|of_source|None")
JOB_RUNNER = Path(job_runner.__file__)


def names(event: ast.expr) -> Iterator[str]:
    """The event names that the first argument of a FatalError can have."""
    if isinstance(event, ast.Constant):
        yield str(event.value)
    elif isinstance(event, ast.IfExp):
        yield from names(event.body)
        yield from names(event.orelse)
    else:
        pytest.fail(f"line {event.lineno}: the test can't tell the names of {ast.unparse(event)}")


def blocked_by(call: ast.Call) -> set[str]:
    """What the ``scope`` of a FatalError can be."""
    scopes: list[ast.expr] = [keyword.value for keyword in call.keywords if keyword.arg == "scope"]
    if any(ast.unparse(scope) == "scope" for scope in scopes):
        # That of a statement: the targets that it names, if it names any.
        return {"source", "target"}
    words = {"of_target": "target", "of_source": "source", "None": "task"}
    found = {words[name] for scope in scopes for name in WORDS.findall(ast.unparse(scope))}
    assert found or not scopes, f"line {call.lineno}: the test can't tell what it blocks"
    return found or {"task"}


def faults() -> dict[str, set[str]]:
    """Every fault, and what it blocks."""
    found: dict[str, set[str]] = {}
    for call in (node for path in ACTORS for node in nodes(path)):
        if not isinstance(call, ast.Call):
            continue
        made = ast.unparse(call.func)
        if made in MAKES_ONE:
            for name in names(call.args[0]):
                found.setdefault(name, set()).add(MAKES_ONE[made])
        elif made.endswith("FatalError") and ast.unparse(call.args[0]) not in GIVEN:
            for name in names(call.args[0]):
                found.setdefault(name, set()).update(blocked_by(call))
    return found


def sections() -> dict[str, FaultSection]:
    """What the operator is told of each fault, by its event."""
    return {event.name: event.fault for event in EVENTS if event.fault}


def test_the_page_of_faults_is_made_from_the_table() -> None:
    assert RUNBOOK.read_text(encoding="utf-8") == faults_page()


def test_every_fault_is_in_the_table_with_what_it_blocks_and_its_remedies() -> None:
    documented = {event: set(told.blocks.split(" or ")) for event, told in sections().items()}
    assert {"source.purged", "rows.duplicate", "ddl.refused"} <= faults().keys()
    assert documented == faults(), "say what they block, what they mean and what to do"


def test_every_outcome_of_a_batch_that_is_a_fault_has_its_event() -> None:
    cases = {
        ast.unparse(node.pattern) for node in nodes(JOB_RUNNER) if isinstance(node, ast.match_case)
    }
    assert cases == {f"WriteOutcome.{outcome.name}" for outcome in set(WriteOutcome) - NO_FAULTS}


def test_every_way_out_is_executed_by_a_test() -> None:
    found = executed(ROOT / "tests")
    told = {event: named(" ".join(told.remedies)) for event, told in sections().items()}
    unknown = {event: ways - told.get(event, set()) for event, ways in found.items()}
    assert not {e: w for e, w in unknown.items() if w}, "the table does not name what they execute"
    left = {event: ways - found.get(event, set()) for event, ways in told.items()}
    assert not {e: w for e, w in left.items() if w}, (
        "each remedy of a fault needs a test that executes it and has the mark `remedy`"
        " (tests/support/tasks/remedies.py)"
    )


@pytest.mark.parametrize(
    "part",
    [
        *(TaskStatus, Fault, SourceStatus, TargetStatus, WriterStatus, ValidationStatus),
        *(BlockedPart, HeldAtSource),
        *(CopyStatus, BinlogDistance, LockStatus, LockSource, LockConflict, LockClaim),
    ],
)
def test_every_field_of_the_status_is_named(part: type) -> None:
    words = set(re.findall(r"\w+", STATUS.read_text(encoding="utf-8")))
    assert {field.name for field in fields(part)} - words == set()
