"""DM's block-allow-list: the upstream schemas and tables that are replicated.

Source of the algorithm: the TiDB Data Migration page "Block and Allow Lists", which follows MySQL's
replication filters.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from replicator.routing.wildcards import NamePattern, PatternError

SYSTEM_SCHEMAS = frozenset({"mysql", "information_schema", "performance_schema", "sys"})


class TableFilter(NamedTuple):
    """An entry of ``do-tables`` or ``ignore-tables``: two patterns, as in `NamePattern`."""

    schema: str
    table: str


class AllowList:
    """Decides by name which tables are replicated.

    ``never``: further schemas to leave out whatever the lists contain, in addition to the system
    schemas: the meta schema of the task. Raises `PatternError` for a pattern that cannot be used.
    """

    def __init__(
        self,
        *,
        do_dbs: Iterable[str] = (),
        ignore_dbs: Iterable[str] = (),
        do_tables: Iterable[TableFilter] = (),
        ignore_tables: Iterable[TableFilter] = (),
        case_sensitive: bool,
        never: Iterable[str] = (),
    ) -> None:
        self._do_dbs = _schemas(do_dbs, "do-dbs", case_sensitive)
        self._ignore_dbs = _schemas(ignore_dbs, "ignore-dbs", case_sensitive)
        self._do_tables = _tables(do_tables, "do-tables", case_sensitive)
        self._ignore_tables = _tables(ignore_tables, "ignore-tables", case_sensitive)
        self._never = SYSTEM_SCHEMAS | {schema.lower() for schema in never}

    def allows_schema(self, schema: str) -> bool:
        """Return whether a schema passes; for a database statement, nothing else counts.

        If ``do-dbs`` is not empty, it alone decides, otherwise ``ignore-dbs``.
        """
        if schema.lower() in self._never:
            return False
        if self._do_dbs:
            return any(pattern.matches(schema) for pattern in self._do_dbs)
        return not any(pattern.matches(schema) for pattern in self._ignore_dbs)

    def allows(self, schema: str, table: str) -> bool:
        """Return whether a table is replicated.

        Its schema must pass. Then: a match in ``do-tables`` lets it pass, even if it is also in
        ``ignore-tables``; a match in ``ignore-tables`` excludes it; without a match, it passes only
        if there are no ``do-tables``.
        """
        if not self.allows_schema(schema):
            return False
        if _match(self._do_tables, schema, table):
            return True
        return not self._do_tables and not _match(self._ignore_tables, schema, table)


_Pair = tuple[NamePattern, NamePattern]


def _schemas(texts: Iterable[str], key: str, case_sensitive: bool) -> tuple[NamePattern, ...]:
    return tuple(_pattern(text, key, case_sensitive) for text in texts)


def _tables(filters: Iterable[TableFilter], key: str, case_sensitive: bool) -> tuple[_Pair, ...]:
    return tuple(
        (_pattern(schema, key, case_sensitive), _pattern(table, key, case_sensitive))
        for schema, table in filters
    )


def _pattern(text: str, key: str, case_sensitive: bool) -> NamePattern:
    try:
        return NamePattern(text, case_sensitive=case_sensitive)
    except PatternError as error:
        raise PatternError(f"{key} of the block-allow-list: {error}") from error


def _match(pairs: tuple[_Pair, ...], schema: str, table: str) -> bool:
    return any(first.matches(schema) and second.matches(table) for first, second in pairs)
