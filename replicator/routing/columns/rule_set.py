"""The rules of one source that decide which of its rows are written to the target, and how.

They are plain data, so that the rules of earlier rows can be compared with the present ones.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from replicator.routing.columns.column_mapping import ColumnMappings, MappingRule
from replicator.routing.columns.member_columns import ColumnRules, Extraction, NamePart
from replicator.routing.event_filter import EventFilter, FilterAction, FilterRule
from replicator.routing.expression.expression_filter import ExpressionFilters, ExpressionRule
from replicator.routing.routes import RouteError, RouteRule, routes_of


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules as written. ``extractions``: by the names of their routes."""

    source: str
    case_sensitive: bool
    routes: tuple[RouteRule, ...]
    extractions: tuple[tuple[str, tuple[Extraction, ...]], ...]
    mappings: tuple[MappingRule, ...]
    filters: tuple[FilterRule, ...]
    expressions: tuple[ExpressionRule, ...]

    def columns(self) -> ColumnRules:
        """Return the rules for columns. Raises RouteError."""
        return ColumnRules(
            self.source,
            routes_of(self.routes, case_sensitive=self.case_sensitive),
            dict(self.extractions),
            ColumnMappings(self.mappings, case_sensitive=self.case_sensitive),
        )

    def event_filter(self) -> EventFilter:
        """Return the filter of events. Raises PatternError."""
        return EventFilter(self.filters, case_sensitive=self.case_sensitive)

    def expression_filters(self) -> ExpressionFilters:
        """Return the filters of row changes. Raises ExpressionError."""
        return ExpressionFilters(self.expressions, case_sensitive=self.case_sensitive)


@dataclass(frozen=True, slots=True)
class MemberRules:
    """The rules for one table as texts, for people and for comparison; empty without a rule.

    Attributes:
        columns: how its columns are changed.
        rows: which of its rows are left out.
        events: which of its changes are left out.
        statements: the rules for its statements.
    """

    columns: str
    rows: str
    events: str
    statements: str


class MemberRuleTexts:
    """The rules of a rule set for each table, as texts. Raises the errors of the rule set."""

    def __init__(self, rules: RuleSet) -> None:
        self._columns = rules.columns()
        self._events = rules.event_filter()
        self._expressions = rules.expression_filters()

    def of(self, schema: str, table: str) -> MemberRules:
        """Return the rules for a replicated table."""
        kinds = sorted(self._events.rows_left_out(schema, table))
        return MemberRules(
            self._columns_of(schema, table),
            "; ".join(self._expressions.texts_of(schema, table)),
            "; ".join(f"{kind} events are left out" for kind in kinds),
            "; ".join(self._events.statement_rules(schema, table)),
        )

    def _columns_of(self, schema: str, table: str) -> str:
        try:
            found = self._columns.of(schema, table)
        except RouteError as error:
            return f"nothing can be made of the name: {error}"
        texts = [f"{column.name} = {column.value!r}" for column in found.extracted]
        if found.mapped is not None:
            texts.insert(0, f"{found.mapped.name} | {found.mapped.upper}")
        return ", ".join(texts)


def dump_rules(rules: RuleSet) -> str:
    """Return a rule set as text."""
    return json.dumps(asdict(rules))


def load_rules(text: str) -> RuleSet:
    """Return the rule set of a text."""
    found = json.loads(text)
    return RuleSet(
        found["source"],
        found["case_sensitive"],
        tuple(RouteRule(**rule) for rule in found["routes"]),
        tuple(
            (name, tuple(Extraction(NamePart(e["part"]), e["expression"], e["column"]) for e in of))
            for name, of in found["extractions"]
        ),
        tuple(MappingRule(**rule) for rule in found["mappings"]),
        tuple(_filter_rule(rule) for rule in found["filters"]),
        tuple(ExpressionRule(**rule) for rule in found["expressions"]),
    )


def _filter_rule(rule: dict[str, object]) -> FilterRule:
    return FilterRule(
        str(rule["name"]),
        str(rule["schemas"]),
        str(rule["tables"]),
        tuple(map(str, _items(rule["events"]))),
        tuple(map(str, _items(rule["statements"]))),
        FilterAction(str(rule["action"])),
    )


def _items(value: object) -> list[object]:
    assert isinstance(value, list), value
    return value
