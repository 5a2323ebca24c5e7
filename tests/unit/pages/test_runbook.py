"""The runbook has every fault that can block something, with its remedies; a page the status."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

from actors.writing import job_runner
from replicator.events.fault_catalogue import FAULT_SECTIONS
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
from scripts.events_reference import faults_page, messages_and_remedies
from tests.support.source_trees import nodes
from tests.support.tasks.remedies import executed, named

ROOT = Path(__file__).parents[3]
RUNBOOK = ROOT / "docs" / "runbook" / "faults.md"
STATUS = ROOT / "docs" / "reference" / "status.md"
NO_FAULTS = {
    WriteOutcome.DONE,
    WriteOutcome.CHANGED,
    WriteOutcome.UNREACHABLE,
    WriteOutcome.LOCKED,
    WriteOutcome.OUT_OF_STEP,
}
EXECUTED_ELSEWHERE = {
    "ddl.create-differs": {"copy anew", "resume"},
    "ddl.other-values": {"replace", "inject"},
    "ddl.time-zone": {"skip", "replace", "inject", "resume"},
    "rows.no-plan": {"reload"},
}
"""Remedies that no test executes for this fault, but for others, by the same code. To copy
everything again is one of them for all other faults."""
JOB_RUNNER = Path(job_runner.__file__)


def test_the_page_of_faults_is_made_from_the_table() -> None:
    assert RUNBOOK.read_text(encoding="utf-8") == faults_page()


def test_every_outcome_of_a_batch_that_is_a_fault_has_its_event() -> None:
    cases = {
        ast.unparse(node.pattern) for node in nodes(JOB_RUNNER) if isinstance(node, ast.match_case)
    }
    assert cases == {f"WriteOutcome.{outcome.name}" for outcome in set(WriteOutcome) - NO_FAULTS}


def test_every_way_out_is_executed_by_a_test() -> None:
    found = executed(ROOT / "tests")
    told = {
        event: named(" ".join([*messages_and_remedies(section), *section.advice]))
        for event, section in FAULT_SECTIONS.items()
    }
    # A start with a changed task file does what `reload` does.
    unknown = {
        event: ways - told.get(event, set()) - ({"run"} if "reload" in told[event] else set())
        for event, ways in found.items()
    }
    assert not {e: w for e, w in unknown.items() if w}, "the table does not name what they execute"
    left = {
        event: ways
        - found.get(event, set())
        - EXECUTED_ELSEWHERE.get(event, {"copy anew"})
        - ({"reload"} if "run" in found.get(event, set()) else set())
        for event, ways in told.items()
    }
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
