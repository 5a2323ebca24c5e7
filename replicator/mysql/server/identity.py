"""What a server, and a binlog, is known by: a position means nothing on another one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from replicator.mysql.connection.answers import understood
from replicator.mysql.server.statement_aliases import Fetching

IDENTITY_SQL: Final = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN"
    " ('server_id', 'server_uuid', 'lower_case_table_names')"
)
"""Asks a server who it is."""


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """What one server is told from another by. MariaDB has no UUID (it is empty then).

    ``folds_names`` is no part of that, but has to stay as well: whether the server takes names of
    tables without their case (`folds_names`). None where it is not known.
    """

    server_id: int
    server_uuid: str
    folds_names: bool | None = None

    @staticmethod
    def told(rows: Iterable[tuple[Any, ...]]) -> ServerIdentity:
        """That of a server that gave these answers, texts, to `IDENTITY_SQL`.

        Raises OddAnswerError.
        """
        with understood("its identity"):
            found = {str(name).lower(): str(value) for name, value in rows}
            return ServerIdentity(
                int(found["server_id"]),
                found.get("server_uuid", ""),
                int(found["lower_case_table_names"]) != 0,
            )

    def is_same(self, other: ServerIdentity) -> bool:
        """Whether both may be of one server: an empty UUID is one that is not known."""
        uuids = {self.server_uuid, other.server_uuid} - {""}
        return self.server_id == other.server_id and len(uuids) < 2

    def names_alike(self, other: ServerIdentity) -> bool:
        """Whether both may take the same names for one: what is not known is no difference."""
        return self.folds_names is other.folds_names or None in (
            self.folds_names,
            other.folds_names,
        )

    def __str__(self) -> str:
        uuid = f" and server_uuid {self.server_uuid}" if self.server_uuid else ""
        return f"server_id {self.server_id}{uuid}"


@dataclass(frozen=True, slots=True)
class AnchorEvent:
    """An event of a binlog: where it begins, and what it can be known by.

    It must still stand where it stood, or the binlog is another one. ``created`` is when its file
    was begun, in seconds since the epoch by the source's clock.
    """

    file: str
    offset: int
    created: int
    fingerprint: int

    @property
    def sequence(self) -> int:
        """The number of its file."""
        return int(self.file.rpartition(".")[2])

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"

    def dump(self) -> str:
        """All of it as a text."""
        return f"{self.offset}:{self.created}:{self.fingerprint}:{self.file}"

    @staticmethod
    def load(text: str) -> AnchorEvent:
        """What `dump` has made a text of."""
        offset, created, print_, file = text.split(":", 3)
        return AnchorEvent(file, int(offset), int(created), int(print_))


async def server_identity(connection: Fetching) -> ServerIdentity:
    """Ask a server who it is. Raises DatabaseUnavailableError or the server's own error."""
    return ServerIdentity.told(await connection.fetch(IDENTITY_SQL))


async def folds_names(connection: Fetching) -> bool:
    """Whether names that differ in case only are one table to a server.

    That is its ``lower_case_table_names`` (MySQL manual, "Identifier Case Sensitivity"): 0 counts
    it, 1 keeps all names in lower case, 2 keeps them as they are given and compares them without
    case (macOS, and TiDB always). With 1 and 2 a statement may write a name in any case, while row
    events have it in lower case: the server lowers a name when it opens the table, and with 2 keeps
    the given one for display only. So where case does not count, a task knows tables by their
    `folded` names. Raises DatabaseUnavailableError or the server's error.
    """
    (row,) = await connection.fetch("SELECT @@lower_case_table_names")
    return int(row[0]) != 0
