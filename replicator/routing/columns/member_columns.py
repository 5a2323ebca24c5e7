"""What the task file makes of the columns of each member: extracted and mapped ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from replicator.routing.columns.column_mapping import ColumnMappings, MappedColumn
from replicator.routing.columns.extracted_columns import ExtractedColumn, Extraction, extracted
from replicator.routing.routes import Routes


@dataclass(frozen=True, slots=True)
class MemberColumns:
    """The columns that the target has besides those of one member, and the one that is mapped."""

    extracted: tuple[ExtractedColumn, ...] = ()
    mapped: MappedColumn | None = None

    @property
    def extracted_names(self) -> frozenset[str]:
        """The names of the extracted columns, as the task file spells them."""
        return frozenset(column.name for column in self.extracted)


AS_THEY_ARE = MemberColumns()
"""A member whose columns go to the target as they are."""


class ColumnRules:
    """The rules of one source about columns. ``extractions`` by the name of the route."""

    def __init__(
        self,
        source: str,
        routes: Routes,
        extractions: Mapping[str, tuple[Extraction, ...]],
        mappings: ColumnMappings,
    ) -> None:
        self._source = source
        self._routes = routes
        self._extractions = {name: of for name, of in extractions.items() if of}
        self._mappings = mappings
        self._known: dict[tuple[str, str], MemberColumns] = {}

    def of(self, schema: str, table: str) -> MemberColumns:
        """What is made of a replicated table's columns.

        Raises `RouteError` where a rule can't be used with the table's name.
        """
        key = (schema, table)
        if key not in self._known:
            self._known[key] = MemberColumns(
                self._extracted(schema, table), self._mappings.of(schema, table)
            )
        return self._known[key]

    def _extracted(self, schema: str, table: str) -> tuple[ExtractedColumn, ...]:
        if not self._extractions:
            # Mostly there are none, and all routes are looked at to find which one decides.
            return ()
        rule = self._routes.rule_of(schema, table)
        extractions = self._extractions.get(rule.name, ()) if rule else ()
        if rule is None or not extractions:
            return ()
        return extracted(rule.name, extractions, self._source, schema, table)


NO_COLUMN_RULES = ColumnRules(
    "", Routes((), case_sensitive=False), {}, ColumnMappings((), case_sensitive=False)
)
"""A source whose columns go to the target as they are."""
