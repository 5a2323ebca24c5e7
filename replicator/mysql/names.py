"""Names of tables and shards, and their form in SQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from replicator.printable_text import shown_line


def quote(name: str) -> str:
    """Return a name in backticks, with its own backticks doubled: safe to insert into a statement.

    Backticks are valid under every ``sql_mode`` (MySQL manual, "Schema Object Names"). Raises
    ValueError for a name that no server accepts: empty, or with a NUL character.
    """
    if not name or "\x00" in name:
        raise ValueError(
            f"{name!r} cannot be the name of a database, table or column: a name has at least one "
            "character and no NUL. Check where the name comes from."
        )
    return "`" + name.replace("`", "``") + "`"


def folded(name: str) -> str:
    """Return a name in lower case, as servers compare names if their case does not count.

    Every server compares names of columns, indexes and partitions like this, and names of tables
    and databases depending on `replicator.mysql.server.identity`. Accents count: ``e`` is not
    ``é``. Seen on MySQL 5.6 and 9.7, MariaDB 10.11 and 11.8, and TiDB 7.5, which agree on all
    letters except some unusual ones: for MariaDB 11.8, the two small sigmas are also equal, and the
    i with and without a dot, and the long and the short s; MySQL and MariaDB 10.11 know no case of
    letters that are newer than Unicode 3. (`str.lower` chooses between the sigmas by the letters
    beside them.)
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
        """Return schema and table for a statement. Raises the errors of `quote`."""
        return f"{quote(self.schema)}.{quote(self.table)}"

    def __str__(self) -> str:
        """Return the name for people.

        Different tables have different texts, and the text is never parsed.
        """
        return f"{_shown(self.schema)}.{_shown(self.table)}"


@dataclass(frozen=True, slots=True, order=True)
class Member:
    """One shard table: a table of a source."""

    source: str
    name: TableName

    def __str__(self) -> str:
        return f"{self.source}: {self.name}"


def _shown(part: str) -> str:
    """Return a part of a name, in backticks if it could be mistaken for two parts or a quoted one.

    Control characters are shown as escapes.
    """
    if (line := shown_line(part)) != part:
        return quote(shown_line(part.replace("\\", "\\\\")))
    return quote(part) if "." in part or "`" in part else line
