"""What a version publishes for others to rely on: names that later ones keep.

``python -m tests.releases.published > tests/releases/VERSION/published.json`` writes it anew, as
long as VERSION is not released. Needs no server.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import fields, is_dataclass
from inspect import signature
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from typer import Typer

import cli
from replicator.api import Task
from replicator.api.comparison import findings_as_json
from replicator.checks.check_items import ALL, CHECKS
from replicator.checks.result import CheckResult
from replicator.checks.source.estimates import TargetEstimate
from replicator.downstream.meta.all_tables import META_TABLES
from replicator.events.all_events import EVENTS
from replicator.mysql.names import TableName
from replicator.pipeline.compare.findings import (
    ColumnExample,
    ColumnLeftOut,
    RowExample,
    TargetComparison,
)
from replicator.status import TaskStatus
from replicator.terminal.checks import checks_json
from replicator.terminal.locks import locks_json
from scripts.cli_reference import _parameters


def published() -> dict[str, Any]:
    """By kind: log events with their fields, meta tables with their parts, commands with their
    options, keys of JSON as paths, names of checks, and parameters of the Python API."""
    findings = findings_as_json("", [_COMPARISON])
    return {
        "log events": {event.name: sorted(event.fields) for event in EVENTS},
        "meta tables": {table.suffix: list(table.parts) for table in META_TABLES},
        "commands": dict(_commands("", cli.app)),
        "json": {
            "status": sorted({"condition", "needs_operator", *_keys(TaskStatus)}),
            "check": sorted(_keys_of(json.loads(checks_json("", [_CHECK], [ALL], [_ESTIMATE])))),
            "compare": sorted(_keys_of(json.loads(json.dumps(findings)))),
            "show-ddl-locks": sorted(_keys_of(json.loads(locks_json("", [])))),
        },
        "checks": sorted(CHECKS),
        "python": {
            f"Task.{name}": list(signature(getattr(Task, name)).parameters)
            for name in ("open", "status", "locks", "shards", "wait", "compare")
        },
    }


_CHECK = CheckResult("connection", "a", "failed", "", ("",))
_ESTIMATE = TargetEstimate("", 0, 0, 0, 0)
_COMPARISON = TargetComparison(
    TableName("s", "t"),
    left_out=(ColumnLeftOut("", ""),),
    examples=[RowExample("", "", "", (ColumnExample("", "", ""),))],
)


def _commands(prefix: str, app: Typer) -> list[tuple[str, list[str]]]:
    found = []
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__.replace("_", "-")
        options = sorted(re.split("[, ]", p.usage)[0] for p in _parameters(command.callback))
        found.append((f"{prefix}{name}", options))
    for group in app.registered_groups:
        assert group.typer_instance is not None
        found += _commands(f"{group.name} ", group.typer_instance)
    return found


def _keys(kind: Any) -> set[str]:
    """The keys of a dataclass in JSON, and of those within it, as paths with dots."""
    hints, found = get_type_hints(kind), set()
    for field in fields(kind):
        found.add(field.name)
        for inner in _dataclasses(hints[field.name]):
            found |= {f"{field.name}.{key}" for key in _keys(inner)}
    return found


def _dataclasses(hint: Any) -> list[Any]:
    if is_dataclass(hint):
        return [hint]
    if get_origin(hint) in (Literal, None) and get_origin(hint) is not Union:
        return []
    return [found for inner in get_args(hint) for found in _dataclasses(inner)]


def _keys_of(value: object) -> set[str]:
    if isinstance(value, list):
        return {key for item in value for key in _keys_of(item)}
    if not isinstance(value, dict):
        return set()
    inner = {f"{key}.{name}" for key, item in value.items() for name in _keys_of(item)}
    return {*value, *inner}


def page() -> str:
    """The text of published.json."""
    return json.dumps(published(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
