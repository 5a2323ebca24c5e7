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


def fields_of(*common: str, **own: str) -> Mapping[str, str]:
    """Fields by name: ``common`` ones of `COMMON_FIELDS`, and ``own`` ones with their meanings."""
    return {**{name: COMMON_FIELDS[name] for name in common}, **own}


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
    fields = fields_of("error", "where", "remedies")
    return LogEvent(name, level, meaning, fields, no_row_lost, fault=section)
