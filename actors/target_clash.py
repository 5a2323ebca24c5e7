"""The fault of two targets that are one table to the target's server."""

from __future__ import annotations

from actors.faults import FatalError
from replicator.mysql.names import TableName
from replicator.schema.registry.registry import SchemaRegistry


def refuse_clash(registry: SchemaRegistry, target: TableName, who: str) -> None:
    """Raise FatalError where a target differs from another one in case only, and its server does
    not tell them apart.

    ``who`` is routed there.
    """
    other = registry.clash(target)
    if other is None:
        return
    name = str(target) if target.table else target.schema
    raise FatalError(
        "target.same-table",
        f"the target {name} is spelled {other} elsewhere, and its server (lower_case_table_names)"
        " takes both for one: two targets whose schema changes and rows are counted apart would"
        " get into one table",
        where=f"{who}, target {name}",
        remedies=(
            "spell both alike in target-schema and target-table under `routes:`, with a route for"
            " what has none (without table-pattern for a database, which goes under its own name"
            " else); `replicator stop`, `replicator run`",
        ),
    )
