"""The kinds of statements in a binlog, recognised by their first words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from replicator.ddl.parser import statement_tables as tables
from replicator.ddl.parser.cursor import Cursor, NotUnderstoodError
from replicator.ddl.parser.statement import ParsedStatement, Span, StatementKind, TableRole
from replicator.ddl.parser.tokens import Token, TokenKind, tokenise
from replicator.ddl.parser.unknown_statements import not_understood, view
from replicator.mysql.session_context.statement_context import StatementContext

_DATABASE = ("DATABASE", "SCHEMA")
_INDEX_KINDS = ("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR")
_DML = frozenset(
    {"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "WITH", "CALL", "DO", "SELECT", "VALUES"}
)
_OBJECTS = {
    "TRIGGER": "trigger",
    "PROCEDURE": "stored procedure",
    "FUNCTION": "stored function",
    "EVENT": "event of the scheduler",
    "USER": "account",
    "ROLE": "role",
    "SERVER": "federated server",
    "PACKAGE": "package",
    "TABLESPACE": "tablespace",
    "UNDO": "undo tablespace",
    "LOGFILE": "log file group",
    "RESOURCE": "resource group",
    "LIBRARY": "library",
    "INSTANCE": "server instance",
    "PREPARE": "prepared statement",
}
_ADMINISTRATION = {
    "GRANT": "privileges",
    "REVOKE": "privileges",
    "FLUSH": "flush",
    "SET": "session or global variable",
    "USE": "change of the default schema",
    "INSTALL": "plugin or component",
    "UNINSTALL": "plugin or component",
    "KILL": "kill of a connection",
    "LOCK": "table lock",
    "UNLOCK": "table lock",
    "SHOW": "query",
    "EXPLAIN": "query",
    "DESCRIBE": "query",
    "HELP": "query",
    "RESET": "reset of a server's state",
    "PURGE": "purge of binlogs",
    "CHANGE": "replication settings",
    "SHUTDOWN": "shutdown",
    "RESTART": "restart",
}
_NO_KINDS = frozenset({"AS", "ON", "FOR", "FROM", "USING", "WITH"})
"""Words that are never part of the name of an object's kind."""
_MAINTENANCE = ("ANALYZE", "OPTIMIZE", "REPAIR", "CHECK", "CHECKSUM")


_LONGEST_KEPT = 5_000
"""Length in characters of the longest cached statement. A statement is classified several times,
and again whenever its source is read again."""


def classify(
    sql: str,
    *,
    default_schema: str,
    ansi_quotes: bool = False,
    no_backslash_escapes: bool = False,
    folds_names: bool = False,
) -> ParsedStatement:
    """Return the kind of a statement and the tables that it names. Never raises.

    A statement that is not fully understood is `StatementKind.UNKNOWN`, with the reason in
    ``detail``.

    Args:
        default_schema: schema of the session that ran the statement, from the binlog event.
        ansi_quotes: the flag of the session's ``sql_mode``.
        no_backslash_escapes: the flag of the session's ``sql_mode``.
        folds_names: whether the server ignores case in names of tables and databases
            (`replicator.mysql.server.identity`); if so, the result has these names in lower case.
    """
    known = _recognised if len(sql) <= _LONGEST_KEPT else _recognised.__wrapped__
    return known(sql, default_schema, ansi_quotes, no_backslash_escapes, folds_names)


def classify_in(context: StatementContext, sql: str, *, default_schema: str) -> ParsedStatement:
    """Classify a statement by the SQL modes of the context that it ran in. Never raises."""
    return classify(
        sql,
        default_schema=default_schema,
        ansi_quotes=context.ansi_quotes,
        no_backslash_escapes=context.no_backslash_escapes,
    )


@lru_cache(maxsize=1000)
def _recognised(
    sql: str,
    default_schema: str,
    ansi_quotes: bool,
    no_backslash_escapes: bool,
    folds_names: bool,
) -> ParsedStatement:
    tokens = tokenise(sql, ansi_quotes=ansi_quotes, no_backslash_escapes=no_backslash_escapes)
    base = ParsedStatement(StatementKind.UNKNOWN, sql, tokens)

    def unknown(why: str) -> ParsedStatement:
        return not_understood(base, default_schema, why, folds_names=folds_names)

    if tokens and tokens[-1].kind is TokenKind.INVALID:
        return unknown(f"the string or name that starts at {tokens[-1].start} is not closed")
    base = _trimmed(base)
    if not base.tokens:
        return replace(base, kind=StatementKind.IGNORED, detail="no statement, comments only")
    try:
        cursor = Cursor(base.tokens, default_schema, folds_names=folds_names)
        found = _by_first_word(cursor, base)
    except NotUnderstoodError as error:
        return unknown(str(error))
    # The body of a routine may contain semicolons; such a statement is IGNORED.
    routines = (StatementKind.IGNORED, StatementKind.UNKNOWN, StatementKind.DML)
    if found.kind not in routines and any(token.text == ";" for token in base.tokens):
        return unknown("more than one statement in one event")
    return found


def _trimmed(base: ParsedStatement) -> ParsedStatement:
    """Remove the final semicolon and MariaDB's ``SET STATEMENT variable = value, … FOR``."""
    tokens = base.tokens
    while tokens and tokens[-1].text == ";":
        tokens = tokens[:-1]
    if [token.keyword for token in tokens[:2]] == ["SET", "STATEMENT"]:
        cursor = Cursor(tokens, "")
        for place, depth, token in cursor.rest():
            if depth == 0 and token.keyword == "FOR" and place + 1 < len(tokens):
                prefix = Span(tokens[0].start, tokens[place + 1].start)
                return replace(base, tokens=tokens[place + 1 :], omitted=(prefix,))
    return replace(base, tokens=tokens)


def _by_first_word(cursor: Cursor, base: ParsedStatement) -> ParsedStatement:
    first = cursor.tokens[0]
    word = first.keyword
    if word in ("CREATE", "ALTER", "DROP", "RENAME"):
        cursor.take()
        return _definition(cursor, base, word)
    if word == "TRUNCATE":
        cursor.take()
        return tables.truncate_table(cursor, base)
    if word in _MAINTENANCE:
        return _maintenance(cursor, base)
    if word in _DML:
        return _dml(cursor, base)
    if word in _ADMINISTRATION:
        return replace(base, kind=StatementKind.IGNORED, detail=_ADMINISTRATION[word])
    if cursor.accept("CACHE", "INDEX"):
        return replace(base, kind=StatementKind.IGNORED, detail="key cache")
    return _transaction(cursor, base)


def _definition(cursor: Cursor, base: ParsedStatement, verb: str) -> ParsedStatement:
    """Read CREATE, ALTER, DROP or RENAME from its second word."""
    or_replace = _or_replace(cursor)
    while cursor.accept_any("ONLINE", "OFFLINE", "IGNORE"):
        # On the target, IGNORE would remove rows and cut values of other shards. ONLINE and OFFLINE
        # only control how the source's server executes the statement.
        token = cursor.tokens[cursor.index - 1]
        base = replace(base, omitted=(*base.omitted, Span(token.start, token.end)))
    temporary = cursor.accept("TEMPORARY")
    base = replace(base, temporary=temporary)
    if cursor.accept("TABLE") or (verb in ("DROP", "RENAME") and cursor.accept("TABLES")):
        return _table(cursor, base, verb, or_replace)
    if cursor.accept_any(*_DATABASE):
        return _database(cursor, base, verb, or_replace)
    if cursor.accept("SEQUENCE"):
        return tables.sequence(cursor, base, verb)
    start = cursor.index
    cursor.accept_any(*_INDEX_KINDS)
    if cursor.accept("INDEX") and verb in ("CREATE", "DROP"):
        kind = StatementKind.CREATE_INDEX if verb == "CREATE" else StatementKind.DROP_INDEX
        return tables.index(cursor, base, kind)
    cursor.index = start
    return _other_object(cursor, base, verb)


def _or_replace(cursor: Cursor) -> Span | None:
    start = cursor.index
    if not cursor.accept("OR", "REPLACE"):
        return None
    return Span(cursor.tokens[start].start, cursor.tokens[start + 1].end)


def _table(
    cursor: Cursor, base: ParsedStatement, verb: str, or_replace: Span | None
) -> ParsedStatement:
    if verb == "CREATE":
        return tables.create_table(cursor, base, or_replace)
    readers: dict[str, Callable[[Cursor, ParsedStatement], ParsedStatement]] = {
        "ALTER": tables.alter_table,
        "DROP": tables.drop_table,
        "RENAME": tables.rename_table,
    }
    return readers[verb](cursor, base)


def _database(
    cursor: Cursor, base: ParsedStatement, verb: str, or_replace: Span | None
) -> ParsedStatement:
    if verb == "CREATE":
        return tables.create_database(cursor, base, or_replace)
    if verb == "RENAME":
        raise NotUnderstoodError("RENAME DATABASE is not supported by any current server")
    reader = tables.alter_database if verb == "ALTER" else tables.drop_database
    return reader(cursor, base)


def _other_object(cursor: Cursor, base: ParsedStatement, verb: str) -> ParsedStatement:
    """Find the object's kind, which follows clauses such as ``DEFINER = …``.

    New kinds of views have more words before VIEW (JSON RELATIONAL DUALITY, MATERIALIZED).
    """
    unknown = ""
    while not cursor.at_end:
        if cursor.accept("SPATIAL", "REFERENCE", "SYSTEM"):
            return replace(base, kind=StatementKind.IGNORED, detail="spatial reference system")
        word = cursor.keyword()
        if word in _OBJECTS and not unknown:
            return replace(base, kind=StatementKind.IGNORED, detail=_OBJECTS[word])
        if cursor.accept("VIEW"):
            return view(cursor, base, verb)
        if cursor.accept("DEFINER"):
            _account(cursor)
        elif cursor.accept("ALGORITHM"):
            cursor.accept_text("=")
            cursor.take()
        elif cursor.accept("SQL", "SECURITY"):
            cursor.take()
        elif word and word not in _NO_KINDS:
            cursor.take()
            unknown = unknown or ("" if word == "AGGREGATE" else word)
        else:
            break
    shown = unknown or cursor.text()
    raise NotUnderstoodError(f"unknown kind of object {shown[:40]!r}")


def _account(cursor: Cursor) -> None:
    """Skip ``= user[@host]`` or ``= CURRENT_USER[()]``."""
    cursor.accept_text("=")
    cursor.take()
    if cursor.accept_text("("):
        cursor.accept_text(")")
    elif not cursor.at_end and cursor.tokens[cursor.index].kind is TokenKind.VARIABLE:
        cursor.take()


def _maintenance(cursor: Cursor, base: ParsedStatement) -> ParsedStatement:
    """Read ANALYZE TABLE and similar. MariaDB's ``ANALYZE UPDATE …`` runs the UPDATE: it is DML."""
    verb = cursor.take().keyword
    cursor.accept_any("LOCAL", "NO_WRITE_TO_BINLOG")
    if cursor.accept_any("TABLE", "TABLES", "VIEW"):
        return replace(base, kind=StatementKind.IGNORED, detail=f"{verb} TABLE")
    if verb == "ANALYZE" and cursor.keyword() in _DML:
        return replace(_dml(cursor, base), detail=f"ANALYZE {cursor.tokens[1].keyword}")
    raise NotUnderstoodError(f"TABLE expected after {verb}")


def _dml(cursor: Cursor, base: ParsedStatement) -> ParsedStatement:
    """Find the table of a plain INSERT, REPLACE, UPDATE, DELETE or LOAD DATA.

    Tools such as pt-table-checksum write to their own tables in statement format. By the table's
    name, the caller can distinguish such statements from statements that would be lost. Other forms
    return no table.
    """
    verb = cursor.take().keyword
    found = replace(base, kind=StatementKind.DML, detail=verb)
    while cursor.accept_any("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "QUICK", "IGNORE"):
        pass
    if verb == "LOAD":
        into = [place for place, _, token in cursor.rest() if token.keyword == "INTO"]
        if not into:
            return found
        cursor.index = into[0] + 1
        cursor.expect("TABLE")
    elif verb in ("INSERT", "REPLACE"):
        cursor.accept("INTO")
    elif verb == "UPDATE" or (verb == "DELETE" and cursor.accept("FROM")):
        table = cursor.table(TableRole.SUBJECT)
        plain = cursor.at_end or cursor.keyword() in ("SET", "WHERE", "ORDER", "LIMIT")
        return replace(found, tables=(table,)) if plain else found
    else:
        return found
    return replace(found, tables=(cursor.table(TableRole.SUBJECT),))


def _transaction(cursor: Cursor, base: ParsedStatement) -> ParsedStatement:
    """Read transaction control; anything else is not understood."""
    token: Token = cursor.take()
    word = token.keyword
    kind: StatementKind | None = None
    if word == "BEGIN" and (cursor.at_end or cursor.accept("WORK")):
        kind = StatementKind.BEGIN if cursor.at_end else None
    elif word == "START" and cursor.accept("TRANSACTION"):
        kind = StatementKind.BEGIN
    elif word == "COMMIT":
        kind = StatementKind.COMMIT
    elif word == "ROLLBACK":
        cursor.accept("WORK")
        to_savepoint = cursor.accept("TO")
        kind = StatementKind.SAVEPOINT if to_savepoint else StatementKind.ROLLBACK
    elif word == "SAVEPOINT" or (word == "RELEASE" and cursor.accept("SAVEPOINT")):
        kind = StatementKind.SAVEPOINT
    elif word == "XA" and not cursor.at_end:
        return replace(base, kind=StatementKind.XA, detail=cursor.take().keyword)
    if kind is None:
        raise NotUnderstoodError(f"unknown statement {token.text[:40]!r}")
    return replace(base, kind=kind)
