"""The effects of the task file on the columns of each member: extracted and mapped columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from replicator.routing.columns.column_mapping import ColumnMappings, MappedColumn
from replicator.routing.routes import RouteError, Routes


class NamePart(StrEnum):
    """The name from which a value is extracted."""

    TABLE = "table"
    SCHEMA = "schema"
    SOURCE = "source"


@dataclass(frozen=True, slots=True)
class ExtractedColumn:
    """A column of the target with the value that it has in all rows of one member."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """An ``extract-table``, ``extract-schema`` or ``extract-source`` of a route.

    ``column``: the target's column. ``expression``: a case-sensitive regular expression with
    groups.
    """

    part: NamePart
    expression: str
    column: str


def extracted(
    route: str, extractions: tuple[Extraction, ...], source: str, schema: str, table: str
) -> tuple[ExtractedColumn, ...]:
    """Return the extracted columns of a member that is routed by the route of this name.

    Source of the rules: the TiDB Data Migration page "Table Routing" and its package
    ``table-router``: the expression is searched for anywhere in the name, and its groups are
    joined; a group that is not part of the match is an empty text. If the expression is not found,
    DM writes an empty text. This would mix shards that must be distinguished, so here it raises
    `RouteError`.
    """
    names = {NamePart.TABLE: table, NamePart.SCHEMA: schema, NamePart.SOURCE: source}
    found = []
    for extraction in extractions:
        name = names[extraction.part]
        # As in DM, \d and \w match only ASCII.
        match = re.search(extraction.expression, name, re.ASCII)
        if match is None:
            raise RouteError(
                f"the route {route!r} fills the column {extraction.column!r} from the"
                f" {extraction.part} by {extraction.expression!r}, which does not match {name!r}"
                f" ({source}: {schema}.{table}): its rows could not be distinguished from those"
                f" of other shards. Correct {extraction.part}-regexp in the task file, or give"
                " the table a separate route."
            )
        value = "".join(group or "" for group in match.groups())
        found.append(ExtractedColumn(extraction.column, value))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class MemberColumns:
    """How the columns of one member become the columns of its target.

    Attributes:
        extracted: the columns that only the target has.
        mapped: the column whose values are mapped.
        path: pairs of folded names, the member's and the target's, of the columns that schema
            changes have renamed or (with an empty second name) dropped only on the target.
    """

    extracted: tuple[ExtractedColumn, ...] = ()
    mapped: MappedColumn | None = None
    path: tuple[tuple[str, str], ...] = ()

    @property
    def extracted_names(self) -> frozenset[str]:
        """The names of the extracted columns, as the task file spells them."""
        return frozenset(column.name for column in self.extracted)


AS_THEY_ARE = MemberColumns()
"""A member whose columns are written unchanged."""


class ColumnRules:
    """The rules of one source about columns. ``extractions``: by the name of the route."""

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
        """Return the rules for a replicated table's columns.

        Raises `RouteError` if a rule can't be used with the table's name.
        """
        key = (schema, table)
        if key not in self._known:
            self._known[key] = MemberColumns(
                self._extracted(schema, table), self._mappings.of(schema, table)
            )
        return self._known[key]

    def _extracted(self, schema: str, table: str) -> tuple[ExtractedColumn, ...]:
        if not self._extractions:
            # Usually there are none, and finding the route needs a match with every route.
            return ()
        rule = self._routes.rule_of(schema, table)
        extractions = self._extractions.get(rule.name, ()) if rule else ()
        if rule is None or not extractions:
            return ()
        return extracted(rule.name, extractions, self._source, schema, table)


NO_COLUMN_RULES = ColumnRules(
    "", Routes((), case_sensitive=False), {}, ColumnMappings((), case_sensitive=False)
)
"""A source whose columns are written unchanged."""
