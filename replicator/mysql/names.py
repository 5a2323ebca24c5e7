"""Names of tables and shards, and their form in SQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from replicator.printable_text import shown_line


def quote(name: str) -> str:
    """Return a name in backticks, with those in it doubled: safe to insert into a statement.

    Backticks are understood under every ``sql_mode`` (MySQL manual, "Schema Object Names"). Raises
    ValueError for a name that no server accepts: empty, or with a NUL character.
    """
    if not name or "\x00" in name:
        raise ValueError(
            f"{name!r} cannot be the name of a database, table or column: a name has at least one "
            "character and no NUL. Check where the name comes from."
        )
    return "`" + name.replace("`", "``") + "`"


def folded(name: str) -> str:
    """Return a name as servers compare it if its case does not count: each letter in lower case.

    Every server compares names of columns, indexes and partitions like that, and those of tables
    and databases depending on `replicator.mysql.server.identity`. Accents count: ``e`` is not
    ``é``. Seen on MySQL 5.6 and 9.7, MariaDB 10.11 and 11.8, and TiDB 7.5, which agree on all
    letters except odd ones: MariaDB 11.8 also takes the two small sigmas, the i with and without a
    dot, the long and the short s for one, and the MySQLs and MariaDB 10.11 know no case of letters
    that are newer than Unicode 3. (`str.lower` chooses between the sigmas by the letters beside
    them.)
    """
    if name.isascii():
        return name.lower()
    return "".join(letter.lower()[0] for letter in name)


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """A table of one server."""

    schema: str
    table: str

    def __iter__(self) -> Iterator[str]:
        """Yield both parts, for the values of a statement: ``(*name, version)``."""
        yield from (self.schema, self.table)

    @property
    def folded(self) -> TableName:
        """Return the name with both parts `folded`."""
        return TableName(folded(self.schema), folded(self.table))

    @property
    def quoted(self) -> str:
        """Return schema and table for a statement. Raises ValueError as `quote` does."""
        return f"{quote(self.schema)}.{quote(self.table)}"

    def __str__(self) -> str:
        """Return the name for people: no two tables are shown alike, and none is parsed from it."""
        return f"{_shown(self.schema)}.{_shown(self.table)}"


@dataclass(frozen=True, slots=True, order=True)
class Member:
    """One shard table: a table of a source."""

    source: str
    name: TableName

    def __str__(self) -> str:
        return f"{self.source}: {self.name}"


def _shown(part: str) -> str:
    """A part of a name, in backticks if it would be taken for two or for a quoted one.

    Control characters are shown as escapes.
    """
    if (line := shown_line(part)) != part:
        return quote(shown_line(part.replace("\\", "\\\\")))
    return quote(part) if "." in part or "`" in part else line
