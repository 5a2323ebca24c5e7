"""The account that a server takes the task for, as GRANT names it."""

from __future__ import annotations

from dataclasses import dataclass

from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import quote

_LITERAL_NAMES = "SHOW GLOBAL VARIABLES LIKE 'partial_revokes'"
"""With it a name of a schema stands for itself alone (MySQL manual, "Privilege Restriction Using
Partial Revokes"); everywhere else it is a pattern in GRANT ("GRANT Statement")."""


@dataclass(frozen=True, slots=True)
class Account:
    """``name`` is quoted; ``patterns``: whether GRANT takes names of schemas for patterns."""

    name: str
    patterns: bool

    def grant(self, rights: str, schema: str) -> str:
        """The statement that gives rights in one schema.

        An account's rights at a schema are those of the pattern that fits best, and no others:
        whatever is needed there must stand in one statement.
        """
        # What looks like a pattern must not stand for other schemas, too.
        return self._grant(rights, _literal(schema) if self.patterns else schema)

    def grant_pattern(self, rights: str, pattern: str) -> str:
        """The statement that gives rights in all schemas that a pattern of a route fits."""
        return self._grant(rights, _literal(pattern).replace("*", "%").replace("?", "_"))

    def _grant(self, rights: str, schema: str) -> str:
        return f"GRANT {rights} ON {quote(schema)}.* TO {self.name};"

    def grant_everywhere(self, rights: str) -> str:
        """The statement that gives rights that concern the whole server."""
        return f"GRANT {rights} ON *.* TO {self.name};"


async def account_of(connection: Connection) -> Account:
    """The account of a connection. Raises DatabaseUnavailableError or the server's error."""
    # Who logs in as app may be 'app'@'10.%': a GRANT to another name would make a new account, or
    # none.
    user, _, host = str((await connection.fetch("SELECT CURRENT_USER()"))[0][0]).rpartition("@")
    literal = [str(value).upper() for _, value in await connection.fetch(_LITERAL_NAMES)] == ["ON"]
    return Account(f"{_quoted(user)}@{_quoted(host)}", not literal)


def _literal(schema: str) -> str:
    return schema.replace("\\", "\\\\").replace("_", r"\_").replace("%", r"\%")


def _quoted(part: str) -> str:
    return f"'{part}'" if not set("'\\") & set(part) else quote(part)
