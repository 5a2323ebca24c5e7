"""A cache of the effects of statements on structures, as learned from a server's scratch table.

The same statement occurs once for each shard, and again whenever a source is read again; executing
it takes a server a tenth of a second. Its outcome depends only on its `Question` and on the server
with its settings. The cache is cleared if the server or its settings change. It keeps no outcome
that may depend on more: on the time, on other tables, or on a server's temporary state.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, replace

from replicator.ddl.parser.statement import ParsedStatement
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.mysql.session_context.statement_context import StatementContext
from replicator.schema.scratch.scratch_statements import as_run, renamed, uncounted
from replicator.schema.structure.structure import Table

CAPACITY = 1000
"""Number of outcomes to keep, the most recently used; 1000 tables of 60 columns need about 30
MB."""

_ANY = TableName("scratch", "table")

_ELSEWHERE = frozenset(
    {"NEXT", "NEXTVAL", "PREVIOUS", "LASTVAL", "SETVAL", "TABLESPACE", "POLICY", "CONNECTION"}
)
"""Words for other objects of a server: sequences, tablespaces, placement policies, other servers.
If a column has such a name, its statement is only learned again each time."""

_MOMENTS = frozenset(
    {
        *("NOW", "SYSDATE", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURDATE", "LOCALTIME"),
        *("LOCALTIMESTAMP", "UTC_DATE", "UTC_TIMESTAMP", "UNIX_TIMESTAMP", "SYSTEM_TIME"),
    }
)
"""Words that may make the bounds of partitions depend on the time."""


@dataclass(frozen=True, slots=True)
class Question:
    """The input of a trial; equal questions have the same outcome on one server.

    The texts contain no names of tables. ``context`` contains no time, since an empty table does
    not depend on it.

    Attributes:
        before: CREATE statement, columns and keys of the structure; empty to create the table.
        statement: the statement as it is executed.
        instead: the operator's override as it is executed.
    """

    before: tuple[object, ...]
    statement: str
    instead: tuple[str, ...]
    context: StatementContext


@dataclass(frozen=True, slots=True)
class LearnedOutcome:
    """The structure after a statement, under any name, or why it is unknown.

    Attributes:
        lasting: whether the outcome is the same at any other time.
        code: the server's error code, if any.
        given: whether the server executed only the operator's override.
    """

    structure: Table | None
    refusal: str
    lasting: bool
    code: int = 0
    given: bool = False


class LearnedStructures:
    """The outcomes learned on one server, for one process. Not thread-safe."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._server = ""
        self._outcomes: OrderedDict[Question, LearnedOutcome] = OrderedDict()

    def __len__(self) -> int:
        return len(self._outcomes)

    def follow(self, server: str) -> None:
        """Use this server (its `server_traits`) from now on; forget outcomes of another one."""
        if server != self._server:
            self._outcomes.clear()
            self._server = server

    def outcome(self, question: Question) -> LearnedOutcome | None:
        """Return the known outcome of a question, or None if it must be learned."""
        found = self._outcomes.get(question)
        if found is not None:
            self._outcomes.move_to_end(question)
        return found

    def note(self, question: Question, outcome: LearnedOutcome) -> None:
        """Keep an outcome if it is lasting."""
        if not outcome.lasting:
            return
        self._outcomes[question] = outcome
        self._outcomes.move_to_end(question)
        if len(self._outcomes) > self._capacity:
            self._outcomes.popitem(last=False)


def question(
    before: Table | None,
    statement: ParsedStatement,
    instead: tuple[ParsedStatement, ...],
    context: StatementContext,
) -> Question:
    """Return the question for a statement, with the names of tables removed."""
    structure: tuple[object, ...] = ()
    if before is not None:
        # Columns compare without `learned`, but the outcome includes it.
        columns = tuple((column, column.learned) for column in before.columns)
        structure = (uncounted(renamed(before.create_sql, _ANY)), columns, before.keys)
    creates = before is None
    return Question(
        structure,
        as_run(statement, _ANY, creates=creates),
        tuple(as_run(one, _ANY, creates=creates) for one in instead),
        replace(context, microseconds=0),
    )


def timeless(statement: ParsedStatement) -> bool:
    """Return whether a statement has the same effect at any time, whatever other tables contain."""
    words = {token.keyword for token in statement.tokens}
    by_moment = "PARTITION" in words and not words.isdisjoint(_MOMENTS)
    return not (statement.as_select or by_moment) and words.isdisjoint(_ELSEWHERE)


_COUNTED_UP = "gtid_"
"""Prefix of settings that change with each transaction (MariaDB KB and MySQL manual, "Global
Transaction ID"). No other settings were seen to change by themselves."""


async def server_traits(connection: Connection, schema: str) -> str:
    """Return a digest of a server's version and global settings and a database's default collation.

    Raises DatabaseUnavailableError or the server's error.
    """
    variables = await connection.fetch("SHOW GLOBAL VARIABLES")
    found = [row for row in variables if not str(row[0]).startswith(_COUNTED_UP)]
    found += await connection.fetch(
        "SELECT DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME"
        " FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s",
        (schema,),
    )
    return hashlib.sha256(repr(found).encode()).hexdigest()
