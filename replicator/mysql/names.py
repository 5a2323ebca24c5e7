"""Names of tables and shards."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """A table of one server."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True, order=True)
class Member:
    """One shard table: a table of a source."""

    source: str
    name: TableName

    def __str__(self) -> str:
        return f"{self.source}: {self.name}"
