"""One event of the log: its name, its level, its fields, and what it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

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
"""The fields that mean the same wherever no event says otherwise."""


@dataclass(frozen=True, slots=True)
class FaultSection:
    """What an operator is told of a fault.

    ``blocks``: what does not go on until the operator has acted (``target``, ``source``, ``task``,
    or two of them with "or" between). ``cause``: what leads to it. ``remedies``: ways to end it,
    of which one is enough.
    """

    blocks: str
    cause: str
    remedies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogEvent:
    """One kind of record in the log.

    ``fields``: what each field besides those of all records means. ``no_row_lost``: of a warning,
    the reason why it costs no row. ``other_level``: some of its records have this level instead, as
    the meaning says. ``fault``: of a fault, what docs/runbook/faults.md tells of it.
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


def info(name: str, meaning: str, common: str = "", /, **own: str) -> LogEvent:
    """An event of the level info.

    ``common``: its fields that are in `COMMON_FIELDS`, with spaces between. ``own``: the meanings
    of its other fields. The functions below take the same.
    """
    return LogEvent(name, "info", meaning, _fields(common, own))


def debug(name: str, meaning: str, common: str = "", /, **own: str) -> LogEvent:
    """An event of the level debug."""
    return LogEvent(name, "debug", meaning, _fields(common, own))


def error(name: str, meaning: str, common: str = "", /, **own: str) -> LogEvent:
    """An event of the level error that is no fault."""
    return LogEvent(name, "error", meaning, _fields(common, own))


def warning(
    name: str, meaning: str, common: str = "", /, *, no_row_lost: str, **own: str
) -> LogEvent:
    """A warning, with the reason why it costs no row."""
    return LogEvent(name, "warning", meaning, _fields(common, own), no_row_lost)


def _fields(common: str, own: Mapping[str, str]) -> Mapping[str, str]:
    return {**{name: COMMON_FIELDS[name] for name in common.split()}, **own}


def fault(
    name: str,
    blocks: str,
    meaning: str,
    cause: str,
    *remedies: str,
    level: Level = "error",
    no_row_lost: str = "",
) -> LogEvent:
    """The event of a fault, with its section (`FaultSection`)."""
    section = FaultSection(blocks, cause, remedies)
    fields = _fields("error where remedies", {})
    return LogEvent(name, level, meaning, fields, no_row_lost, fault=section)
