"""The declaration of a meta table: its name in a task, its columns and its keys.

The module that reads and writes a meta table declares it; `replicator.downstream.meta.all_tables`
lists them all. This module needs no asyncio driver, because executors write some of the tables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from replicator.mysql.names import TableName

_PART = re.compile(r", (?![^(]*\))")
"""The separator of two parts of a definition: a comma outside of parentheses."""

_OPTIONS = "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"


@dataclass(frozen=True, slots=True)
class MetaTable:
    """A table that each task has once; its texts are compared byte by byte.

    Attributes:
        suffix: the part of the name after the task's name.
        definition: the columns and keys, as SQL.
    """

    suffix: str
    definition: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The definitions of the columns and keys; only keys begin with a capital letter."""
        return tuple(_PART.split(self.definition))

    @property
    def columns(self) -> frozenset[str]:
        """The names of its columns."""
        return frozenset(part.partition(" ")[0] for part in self.parts if part[0].islower())

    def name(self, task: str) -> str:
        """The name of a task's table, without the schema."""
        return f"{task}_{self.suffix}"

    def qualified(self, meta_schema: str, task: str) -> str:
        """The quoted, qualified name of a task's table."""
        return TableName(meta_schema, self.name(task)).quoted

    def create_sql(self, meta_schema: str, task: str) -> str:
        """The statement that creates a task's table if it does not exist."""
        name = self.qualified(meta_schema, task)
        return f"CREATE TABLE IF NOT EXISTS {name} ({self.definition}) {_OPTIONS}"
