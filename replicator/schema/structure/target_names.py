"""Targets whose names differ in case only, on a server that takes them for one table.

Pure. To the task two names are two targets: each would have its own version, watermarks and lock,
while their rows and schema changes go to one table.
"""

from __future__ import annotations

from replicator.mysql.names import TableName, folded


class TargetNames:
    """The names of targets seen so far. ``folds``: as in `replicator.mysql.server.name_case`."""

    def __init__(self, *, folds: bool) -> None:
        self._folds = folds
        self._tables: dict[TableName, TableName] = {}
        self._schemas: dict[str, str] = {}

    def clash(self, name: TableName) -> str | None:
        """Take a name in; the earlier spelling that the server takes for the same, None: none.

        Of the database where that is spelled otherwise, else of the table. An empty table name
        stands for the database alone.
        """
        if not self._folds:
            return None
        schema = self._schemas.setdefault(folded(name.schema), name.schema)
        table = self._tables.setdefault(name.folded, name)
        if schema != name.schema:
            return schema
        return str(table) if table != name else None
