"""Extracted columns: columns of the target that hold a part of the shard's name.

Source of the rules: the TiDB Data Migration page "Table Routing" and its package ``table-router``:
the expression is found anywhere in the name, and what its groups hold is joined. Where it is not
found, DM writes an empty text. Shards that are to be told apart would then be mixed, so here it is
an error; a group that takes no part in the match is an empty text here, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from replicator.routing.routes import RouteError


class NamePart(StrEnum):
    """What is extracted from."""

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
    """``extract-table``, ``-schema`` or ``-source`` of a route.

    ``column`` is the target's, ``expression`` a regular expression with groups, which counts the
    case of letters.
    """

    part: NamePart
    expression: str
    column: str


def extracted(
    route: str, extractions: tuple[Extraction, ...], source: str, schema: str, table: str
) -> tuple[ExtractedColumn, ...]:
    """The extracted columns of a member that goes by the route of this name.

    Raises `RouteError` where an expression is not found in its name.
    """
    names = {NamePart.TABLE: table, NamePart.SCHEMA: schema, NamePart.SOURCE: source}
    found = []
    for extraction in extractions:
        name = names[extraction.part]
        # As in DM \d and \w are ASCII's.
        match = re.search(extraction.expression, name, re.ASCII)
        if match is None:
            raise RouteError(
                f"the route {route!r} fills the column {extraction.column!r} from the"
                f" {extraction.part} by {extraction.expression!r}, which is not found in {name!r}"
                f" ({source}: {schema}.{table}): its rows could not be told from those of other"
                f" shards. Correct {extraction.part}-regexp in the task file, or give the"
                f" table a route of its own."
            )
        value = "".join(group or "" for group in match.groups())
        found.append(ExtractedColumn(extraction.column, value))
    return tuple(found)
