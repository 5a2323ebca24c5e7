"""Side effects of a statement that changes data: functions, triggers, views, foreign keys.

A server that logs a statement instead of rows does not log what its triggers and stored functions
write (MySQL's manual, "Stored Program Binary Logging"; MariaDB's page "Binary Log Formats"). Only
an execution shows these changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from replicator.ddl.parser.alter_parser import only_counts
from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.ddl.parser.tokens import Token, TokenKind
from replicator.ddl.parser.unknown_statements import mentioned_tables
from replicator.mysql.names import TableName

_LANGUAGE = (
    "ALL AND ANY AS BETWEEN BY CASE DISTINCT DIV ELSE EXISTS FROM HAVING IN INDEX INTERVAL"
    " JOIN KEY LIKE MOD NOT ON OR OVER PARTITION RETURNING SELECT SET SOME THEN UNION USING"
    " VALUE VALUES WHEN WHERE WITH XOR REGEXP RLIKE INTO LIMIT"
)
_FUNCTIONS = (
    "ABS ACOS ADDDATE ADDTIME AES_DECRYPT AES_ENCRYPT ASCII ASIN ATAN ATAN2 AVG BIN BIT_AND"
    " BIT_COUNT BIT_LENGTH BIT_OR BIT_XOR CAST CEIL CEILING CHAR CHARACTER_LENGTH CHAR_LENGTH"
    " COALESCE CONCAT CONCAT_WS CONNECTION_ID CONV CONVERT CONVERT_TZ COS COT COUNT CRC32"
    " CURDATE CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURTIME DATABASE DATE"
    " DATEDIFF DATE_ADD DATE_FORMAT DATE_SUB DAY DAYNAME DAYOFMONTH DAYOFWEEK DAYOFYEAR"
    " DECIMAL DEGREES ELT EXP EXTRACT FIELD FIND_IN_SET FLOOR FORMAT FROM_BASE64 FROM_DAYS"
    " FROM_UNIXTIME GREATEST GROUP_CONCAT HEX HOUR IF IFNULL INET6_ATON INET6_NTOA INET_ATON"
    " INET_NTOA INSERT INSTR ISNULL JSON_ARRAY JSON_EXTRACT JSON_OBJECT JSON_UNQUOTE"
    " JSON_VALUE LAST_DAY LAST_INSERT_ID LCASE LEAST LEFT LENGTH LN LOCALTIME LOCALTIMESTAMP"
    " LOCATE LOG LOG10 LOG2 LOWER LPAD LTRIM MAKEDATE MAKETIME MAX MD5 MICROSECOND MID MIN"
    " MINUTE MONTH MONTHNAME NOW NULLIF NUMERIC OCT OCTET_LENGTH ORD PI POSITION POW POWER"
    " QUARTER QUOTE RADIANS RAND REPEAT REPLACE REVERSE RIGHT ROUND ROW RPAD RTRIM SCHEMA"
    " SECOND SEC_TO_TIME SESSION_USER SHA SHA1 SHA2 SIGN SIN SPACE SQRT STD STDDEV STR_TO_DATE"
    " SUBDATE SUBSTR SUBSTRING SUBSTRING_INDEX SUBTIME SUM SYSDATE SYSTEM_USER TAN TIME"
    " TIMEDIFF TIMESTAMP TIMESTAMPADD TIMESTAMPDIFF TIME_FORMAT TIME_TO_SEC TO_BASE64 TO_DAYS"
    " TO_SECONDS TRIM TRUNCATE UCASE UNHEX UNIX_TIMESTAMP UPPER USER UTC_DATE UTC_TIME"
    " UTC_TIMESTAMP UUID UUID_SHORT VARIANCE VERSION WEEK WEEKDAY WEEKOFYEAR YEAR YEARWEEK"
    " BINARY VARCHAR NCHAR SIGNED UNSIGNED"
)
_BEFORE_BRACKETS = frozenset(_LANGUAGE.split())
"""Keywords that can precede brackets."""

_BUILT_IN = frozenset(_FUNCTIONS.split())
"""Built-in functions and types that change nothing."""


def stored_functions(statement: ParsedStatement) -> tuple[str, ...]:
    """Return the names in a statement that may be calls of stored functions.

    A stored function with the name of a built-in one can only be called with its schema (MySQL's
    manual, "Function Name Parsing and Resolution").
    """
    spans = [table.span for table in statement.named(TableRole.SUBJECT)]
    tokens = [t for t in statement.tokens if not any(s.start <= t.start < s.end for s in spans)]
    found = []
    for before, token, behind in zip([None, *tokens], tokens, tokens[1:], strict=False):
        if behind.text != "(" or not token.is_name:
            continue
        qualified = before is not None and before.text == "."
        known = token.kind is TokenKind.WORD and token.keyword in _BEFORE_BRACKETS | _BUILT_IN
        if qualified or not known:
            found.append(token.name)
    return tuple(found)


def mentioned(statement: ParsedStatement, names: Set[str]) -> tuple[str, ...]:
    """Return the names, all in lower case, that occur anywhere in a statement."""
    words = {token.name.lower() for token in statement.tokens if token.is_name}
    return tuple(sorted(words & names))


def may_change_side_effects(statement: ParsedStatement, schema: str, table: str) -> bool:
    """Return whether a statement may change a table's triggers, or whether the table is a view.

    Also True for a change of any view. A plain CREATE TABLE changes neither: only a temporary table
    can have had the name before, and temporary tables have no triggers.
    """
    if statement.temporary:
        return False
    match statement.kind:
        case StatementKind.UNKNOWN | StatementKind.VIEW:
            return True
        case StatementKind.IGNORED:
            return statement.detail == "trigger"
        case StatementKind.DROP_DATABASE | StatementKind.CREATE_DATABASE:
            assert statement.schema is not None
            return statement.schema.name.lower() == schema.lower()
        case StatementKind.CREATE_TABLE:
            concerned = statement.replaces_table
        case StatementKind.DROP_TABLE:
            concerned = True
        case _:
            concerned = bool(statement.renames)
    name = (schema.lower(), table.lower())
    return concerned and any((t.schema.lower(), t.table.lower()) == name for t in statement.tables)


_HARMLESS = frozenset(
    {
        *(StatementKind.BEGIN, StatementKind.COMMIT, StatementKind.ROLLBACK),
        *(StatementKind.SAVEPOINT, StatementKind.XA, StatementKind.DML, StatementKind.SEQUENCE),
        *(
            StatementKind.IGNORED,
            StatementKind.VIEW,
            StatementKind.CREATE_DATABASE,
            StatementKind.ALTER_DATABASE,
        ),
    }
)


def changed_tables(statement: ParsedStatement) -> Iterator[TableName]:
    """Yield the tables whose structure or name a statement may change.

    An empty table name means all tables of the schema; if the schema is empty, too, all tables of
    the source.
    """
    if statement.kind in _HARMLESS or statement.temporary or only_counts(statement):
        return
    if statement.kind is StatementKind.UNKNOWN:
        yield from mentioned_tables(statement)
        return
    if statement.kind is StatementKind.DROP_DATABASE and statement.schema is not None:
        yield TableName(statement.schema.name, "")
    for role in (TableRole.SUBJECT, TableRole.NEW_NAME, TableRole.EXCHANGED):
        for reference in statement.named(role):
            yield TableName(reference.schema, reference.table)


def concerns(changed: TableName, table: TableName) -> bool:
    """Whether an entry of `changed_tables` includes this table."""
    if changed.table:
        return changed == table
    return changed.schema in ("", table.schema)


def acts_on_rows(tokens: Sequence[Token]) -> bool:
    """Return whether a statement or a key's definition has ON DELETE or ON UPDATE with an action.

    RESTRICT and NO ACTION change nothing. InnoDB makes the changes below the level of the log:
    MariaDB (10.11, 11.8) and MySQL up to 9.5 only log the rows of the parent. Since 9.6, MySQL
    makes and logs them above this level, unless innodb_native_foreign_keys is on (release notes;
    seen on 5.6 and 9.7).
    """
    words = [token.keyword for token in tokens]
    return any(
        words[at : at + 2] in (["ON", "DELETE"], ["ON", "UPDATE"])
        and words[at + 2 : at + 3] in (["CASCADE"], ["SET"])
        for at in range(len(words))
    )
