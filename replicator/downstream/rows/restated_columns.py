"""Columns of a target that a row comes without, and that an update has to say something about.

A shard may lack a column that others have brought. Its row on the target is to have there what the
shard's own statement will give it: the column's default, as it is made of the row by then. Left
alone, a server would set a column with ON UPDATE to the time of our writing, and keep a default
that was made of the row's former values ("Automatic Initialization and Updating for TIMESTAMP and
DATETIME", "Data Type Default Values" of MySQL's manual).
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from replicator.ddl.parser.column_definitions import outside_brackets
from replicator.downstream.rows.target_columns import Restated
from replicator.mysql.names import folded
from replicator.schema.effects.column_values import definition_of, value_columns
from replicator.schema.structure.structure import Table


def restated_columns(target: Table, written: Collection[str]) -> tuple[tuple[str, Restated], ...]:
    """Such columns among those that are not ``written``, each with what an update writes."""
    names = set(map(folded, written))
    left = [c for c in target.columns if folded(c.name) not in names and not c.generated]
    found = ((column.name, _restated(target, column.name)) for column in left)
    return tuple((name, how) for name, how in found if how is not None)


def _restated(target: Table, column: str) -> Restated | None:
    if value_columns(target, column):
        return Restated.DEFAULT
    words = [token.keyword for token in outside_brackets(definition_of(target.create_sql, column))]
    return Restated.KEPT if ("ON", "UPDATE") in pairwise(words) else None
