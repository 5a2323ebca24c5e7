"""What statements have done to structures on a server's scratch table, kept for the next time.

The same statement comes once for each shard, and again whenever a source is read again; to try it
out takes a server a tenth of a second. Its outcome follows from what stands in a `Question`, and
from the server with its settings. So what was learned on one server is forgotten where another one,
or the same one with other settings, is learned on. Nothing is kept whose outcome may follow from
more: the moment, other tables, or what a server lacked for a moment only.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, replace

from replicator.ddl.parser.statement import ParsedStatement
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.context.statement_context import StatementContext
from replicator.mysql.names import TableName
from replicator.schema.scratch.scratch_statements import as_run, renamed, uncounted
from replicator.schema.structure.structure import Table

CAPACITY = 1000
"""Outcomes that are kept, those asked for last: of 60 columns each they take some 30 MB."""

_ANY = TableName("scratch", "table")

_ELSEWHERE = frozenset(
    {"NEXT", "NEXTVAL", "PREVIOUS", "LASTVAL", "SETVAL", "TABLESPACE", "POLICY", "CONNECTION"}
)
"""Words of what else there may be on a server, or not: sequences, tablespaces, placement policies,
other servers. As names of columns they cost no more than learning anew."""

_MOMENTS = frozenset(
    {
        *("NOW", "SYSDATE", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURDATE", "LOCALTIME"),
        *("LOCALTIMESTAMP", "UTC_DATE", "UTC_TIMESTAMP", "UNIX_TIMESTAMP", "SYSTEM_TIME"),
    }
)
"""Words by which the bounds of partitions may follow from the moment."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a statement is tried with: equal ones have the same outcome on one server.

    ``before``: the CREATE statement, columns and keys of the structure, empty for a statement that
    creates the table. ``statement`` and ``instead``, the operator's override, are as they are run.
    No names of tables are left in any of these. ``context`` is without the moment, which a table
    without rows does not show.
    """

    before: tuple[object, ...]
    statement: str
    instead: tuple[str, ...]
    context: StatementContext


@dataclass(frozen=True, slots=True)
class LearnedOutcome:
    """The structure behind a statement, under any name, or why there is none.

    ``lasting``: it would be the same at any other moment. ``code``: the server's error, if any.
    ``given``: the server executed only the operator's override.
    """

    structure: Table | None
    refusal: str
    lasting: bool
    code: int = 0
    given: bool = False


class LearnedStructures:
    """The outcomes that were learned on one server. Of a process; not to be shared by threads."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._server = ""
        self._outcomes: OrderedDict[Question, LearnedOutcome] = OrderedDict()

    def __len__(self) -> int:
        return len(self._outcomes)

    def follow(self, server: str) -> None:
        """Learn on this server from now on (its `server_traits`); what was
        learned on another one is forgotten."""
        if server != self._server:
            self._outcomes.clear()
            self._server = server

    def outcome(self, question: Question) -> LearnedOutcome | None:
        """What is known to come of it; None where that is to be learned."""
        found = self._outcomes.get(question)
        if found is not None:
            self._outcomes.move_to_end(question)
        return found

    def note(self, question: Question, outcome: LearnedOutcome) -> None:
        """Keep what was learned, if it lasts."""
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
    """What is asked, with the names of tables taken out."""
    structure: tuple[object, ...] = ()
    if before is not None:
        # A column's provenance is part of the outcome, and no part of what makes columns equal.
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
    """Whether a statement does the same at any moment, whatever other tables hold."""
    words = {token.keyword for token in statement.tokens}
    by_moment = "PARTITION" in words and not words.isdisjoint(_MOMENTS)
    return not (statement.as_select or by_moment) and words.isdisjoint(_ELSEWHERE)


_COUNTED_UP = "gtid_"
"""How settings begin that change with each transaction (MariaDB KB and MySQL manual, "Global
Transaction ID"): no others were seen to change by themselves."""


async def server_traits(connection: Connection, schema: str) -> str:
    """A digest of a server's version and global settings, and of a database's default collation.

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
