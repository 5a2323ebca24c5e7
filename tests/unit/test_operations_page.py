"""docs/operations.md tells every fault that can pause a task, its ways out, and the status."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from replicator.pipeline.batch import Outcome
from replicator.status import (
    BinlogDistance,
    CopyStatus,
    Fault,
    LockClaim,
    LockConflict,
    LockSource,
    LockStatus,
    SourceStatus,
    TargetStatus,
    TaskStatus,
    WriterStatus,
)

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
ACTORS = sorted((ROOT / "actors").rglob("*.py"))
NO_FAULTS = (Outcome.DONE, Outcome.UNREACHABLE, Outcome.OUT_OF_STEP)
OUTCOMES = [o.value for o in Outcome if o not in NO_FAULTS]


def names(event: ast.expr) -> Iterator[str]:
    """The event names that the first argument of a FatalError can have."""
    if isinstance(event, ast.Constant):
        yield str(event.value)
    elif isinstance(event, ast.IfExp):
        yield from names(event.body)
        yield from names(event.orelse)
    elif ast.unparse(event) == "f'rows.{bucket.outcome.value}'":
        yield from (f"rows.{outcome}" for outcome in OUTCOMES)
    else:
        pytest.fail(f"line {event.lineno}: the test can't tell the names of {ast.unparse(event)}")


def faults() -> set[str]:
    calls = (node for path in ACTORS for node in ast.walk(ast.parse(path.read_text())))
    return {
        name
        for call in calls
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("FatalError")
        for name in names(call.args[0])
    }


def test_every_fault_is_in_the_table_with_its_ways_out() -> None:
    table = PAGE.split("| event | what it means | ways out |\n|---|---|---|\n")[1].split("\n\n")[0]
    documented = set(re.findall(r"^\| `([a-z.-]+)` \| .+ \| .+ \|$", table, re.MULTILINE))
    assert {"source.purged", "rows.duplicate", "ddl.refused"} <= faults()
    assert documented == faults(), "say what they mean and what to do"


@pytest.mark.parametrize(
    "part",
    [
        *(TaskStatus, Fault, SourceStatus, TargetStatus, WriterStatus),
        *(CopyStatus, BinlogDistance, LockStatus, LockSource, LockConflict, LockClaim),
    ],
)
def test_every_field_of_the_status_is_named(part: type) -> None:
    section = PAGE.split("## Status\n")[1].split("\n## ")[0]
    words = set(re.findall(r"\w+", section))
    assert {field.name for field in fields(part)} - words == set()
