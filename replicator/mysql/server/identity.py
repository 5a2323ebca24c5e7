"""The identity of a server, and of a binlog: positions of different binlogs can't be compared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from replicator.mysql.connection.malformed_answers import parsing_answer
from replicator.mysql.server.statement_aliases import Fetching

IDENTITY_SQL: Final = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN"
    " ('server_id', 'server_uuid', 'lower_case_table_names')"
)
"""Query for the identity of a server."""


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """Distinguishes servers. MariaDB has no UUID, so it is empty.

    ``folds_names`` is not part of the identity, but must not change either: whether the server
    ignores the case of table names (`folds_names`). None if it is not known.
    """

    server_id: int
    server_uuid: str
    folds_names: bool | None = None

    @staticmethod
    def told(rows: Iterable[tuple[Any, ...]]) -> ServerIdentity:
        """Return the identity from the rows of `IDENTITY_SQL`; their values may be texts.

        Raises OddAnswerError.
        """
        with parsing_answer("its identity"):
            found = {str(name).lower(): str(value) for name, value in rows}
            return ServerIdentity(
                int(found["server_id"]),
                found.get("server_uuid", ""),
                int(found["lower_case_table_names"]) != 0,
            )

    def is_same(self, other: ServerIdentity) -> bool:
        """Return whether both may be the same server; an empty UUID is unknown."""
        uuids = {self.server_uuid, other.server_uuid} - {""}
        return self.server_id == other.server_id and len(uuids) < 2

    def names_alike(self, other: ServerIdentity) -> bool:
        """Return whether both may compare names in the same way.

        An unknown setting counts as equal.
        """
        return self.folds_names is other.folds_names or None in (
            self.folds_names,
            other.folds_names,
        )

    def __str__(self) -> str:
        uuid = f" and server_uuid {self.server_uuid}" if self.server_uuid else ""
        return f"server_id {self.server_id}{uuid}"


@dataclass(frozen=True, slots=True)
class AnchorEvent:
    """An event of a binlog: its position and its identification.

    If it is no longer at its position, the binlog is another one. ``created``: when its file was
    begun, in seconds since the epoch by the source's clock.
    """

    file: str
    offset: int
    created: int
    fingerprint: int

    @property
    def sequence(self) -> int:
        """The number of the event's file."""
        return int(self.file.rpartition(".")[2])

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"

    def dump(self) -> str:
        """Return the anchor as a text."""
        return f"{self.offset}:{self.created}:{self.fingerprint}:{self.file}"

    @staticmethod
    def load(text: str) -> AnchorEvent:
        """Return the anchor from a text of `dump`."""
        offset, created, print_, file = text.split(":", 3)
        return AnchorEvent(file, int(offset), int(created), int(print_))


async def server_identity(connection: Fetching) -> ServerIdentity:
    """Query a server's identity. Raises DatabaseUnavailableError or the server's own error."""
    return ServerIdentity.told(await connection.fetch(IDENTITY_SQL))


async def folds_names(connection: Fetching) -> bool:
    """Return whether names that differ only in case are the same table for a server.

    This depends on its ``lower_case_table_names`` (MySQL manual, "Identifier Case Sensitivity"):
    with 0, case counts; 1 stores all names in lower case; 2 stores them as given and compares them
    without case (macOS, and TiDB always). With 1 and 2, a statement may write a name in any case,
    while row events have it in lower case: the server lowers a name when it opens the table, and
    with 2 keeps the given one only for display. So if case does not count, a task knows tables by
    their `folded` names. Raises DatabaseUnavailableError or the server's error.
    """
    (row,) = await connection.fetch("SELECT @@lower_case_table_names")
    return int(row[0]) != 0
