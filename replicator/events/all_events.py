"""All events of the log, from `log_events.yaml` and `faults.yaml` in this folder.

A test compares the program's log with these tables, and documentation pages are made from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from replicator.events.fault_catalogue import FAULT_SECTIONS, FaultSection, read_table

Level = Literal["debug", "info", "warning", "error"]

COMMON_FIELDS: Mapping[str, str] = {
    "source": "the `source-id`",
    "target": "the target table",
    "member": "the shard",
    "table": "the table at the source",
    "position": "the place in the binlog of the source (`file:offset`)",
    "version": "the number of the schema change of the target",
    "statement": "the statement, cut where it is long",
    "reason": "the cause, in words",
    "error": "the message of the error",
    "where": "the source, target, shard and position, as far as known",
    "remedies": "what to do",
}
"""The fields that have the same meaning in all events, unless an event defines another meaning."""


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One kind of record in the log.

    Attributes:
        fields: the meaning of each field, except the fields that all records have.
        no_row_lost: for a warning, the reason why no row is lost.
        other_level: another level that some of its records have, as the meaning says.
        fault: the section of docs/runbook/faults.md about a fault.
    """

    name: str
    level: Level
    meaning: str
    fields: Mapping[str, str] = field(default_factory=dict)
    no_row_lost: str = ""
    other_level: Level | None = None
    fault: FaultSection | None = None

    @property
    def levels(self) -> frozenset[Level]:
        """All levels that its records can have."""
        return frozenset({self.level, self.other_level or self.level})


_LEVELS: tuple[Level, ...] = ("debug", "info", "warning", "error")


def _table(name: str) -> Mapping[str, tuple[LogEvent, ...]]:
    return {
        heading: tuple(_event(event, entry) for event, entry in events.items())
        for heading, events in read_table(name).items()
    }


def _event(name: str, entry: dict[str, Any]) -> LogEvent:
    """Return the event of an entry. Raises TypeError for an unknown key in the entry."""
    (level,) = (level for level in _LEVELS if level in entry)
    meaning, fault = entry.pop(level), FAULT_SECTIONS.get(name)
    if fault is not None:
        fields = {key: COMMON_FIELDS[key] for key in ("error", "where", "remedies")}
        return LogEvent(name, level, meaning, fields, entry.get("no_row_lost", ""), fault=fault)
    common, own = entry.pop("common", ""), entry.pop("fields", {})
    fields = {key: COMMON_FIELDS[key] for key in common.split()} | own
    return LogEvent(name, level, meaning, fields, **entry)


SUBJECTS = _table("log_events.yaml")
"""The events that are not faults, by the headings of their page."""

FAULTS = _table("faults.yaml")
"""The faults, by the headings of their page."""

FAULT_EVENTS = tuple(event for events in FAULTS.values() for event in events)

EVENTS = (*(event for events in SUBJECTS.values() for event in events), *FAULT_EVENTS)
"""Every event; each name occurs once."""
