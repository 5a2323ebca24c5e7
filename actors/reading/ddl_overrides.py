"""The operator's overrides of statements."""

from __future__ import annotations

from collections.abc import Iterable

from replicator.binlog.segments.segment import Statement
from replicator.ddl.parser.statement import StatementKind
from replicator.ddl.parser.statement_kinds import classify
from replicator.downstream.meta.ddl_overrides import DdlOverride


class DdlOverrides:
    """The overrides of a task, by source and position."""

    def __init__(self, overrides: Iterable[DdlOverride] = ()) -> None:
        self._overrides = {(override.source, override.key): override for override in overrides}

    def add(self, override: DdlOverride) -> None:
        """Add an override, which replaces an earlier one for the same position."""
        self._overrides[override.source, override.key] = override

    def find(self, source: str, statement: Statement) -> DdlOverride | None:
        """Return the override for a statement.

        It may be given for the statement's own position, or for the position of its event group.
        The latter does not apply to DML, because a group may have several DML statements.
        """
        own = self._overrides.get((source, statement.position.key))
        group = self._overrides.get((source, statement.transaction))
        if own is None and group is not None:
            kind = classify(statement.sql, default_schema=statement.schema).kind
            return group if kind is not StatementKind.DML else None
        return own
