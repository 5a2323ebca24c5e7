"""The rules by which the rows of each source were written, in a meta table."""

from __future__ import annotations

from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta_table import MetaTable

RULES_TABLE = MetaTable(
    "rules",
    "source VARCHAR(64) NOT NULL PRIMARY KEY, rules LONGTEXT NOT NULL",
)


class RuleTextStore:
    """Reads and writes the rules, as texts."""

    def __init__(self, meta: MetaStore) -> None:
        self._meta = meta
        self._table = meta.table(RULES_TABLE)

    async def load(self) -> dict[str, str]:
        """Return the rules of each source."""
        rows = await self._meta.connection.fetch(f"SELECT source, rules FROM {self._table}")
        return {str(source): str(rules) for source, rules in rows}

    async def put(self, source: str, rules: str) -> None:
        """Save the rules of a source, replacing its former ones."""
        await self._meta.write(
            f"REPLACE INTO {self._table} (source, rules) VALUES (%s, %s)", (source, rules)
        )
