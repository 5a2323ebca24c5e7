"""The operator's rules, as the readers look them up."""

from __future__ import annotations

from collections.abc import Iterable

from replicator.binlog.segment import Statement
from replicator.ddl.recognise import recognise
from replicator.ddl.statement import StatementKind
from replicator.downstream.ddl_overrides import BinlogRule


class RuleBook:
    """The rules of a task, by source and position."""

    def __init__(self, rules: Iterable[BinlogRule] = ()) -> None:
        self._rules = {(rule.source, rule.key): rule for rule in rules}

    def add(self, rule: BinlogRule) -> None:
        """Take a rule in, in place of another one for the same position."""
        self._rules[rule.source, rule.key] = rule

    def find(self, source: str, statement: Statement) -> BinlogRule | None:
        """The rule for a statement: named by its own position, or by that of its event group.

        The latter not for DML, of which a group may hold several statements.
        """
        own = self._rules.get((source, statement.position.key))
        group = self._rules.get((source, statement.transaction))
        if own is None and group is not None:
            kind = recognise(statement.sql, default_schema=statement.schema).kind
            return group if kind is not StatementKind.DML else None
        return own
