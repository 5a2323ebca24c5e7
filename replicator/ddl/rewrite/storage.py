"""Storage in a CREATE or ALTER TABLE: engines, and places outside of the target's table.

A statement of a binlog must not make the target's server open a file of the source's choice, or
connect to another server. Rows and their record are written in one transaction, so a table of the
target gets an engine that can roll back, whatever the engine of its shards is.

Sources: the grammars of table options and partition definitions in MySQL's manual ("CREATE TABLE
Statement", "Setting the Storage Engine") and MariaDB's ("CREATE TABLE", "Partitioning Types
Overview").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import pairwise

from replicator.ddl.model.table import TableOption
from replicator.ddl.parser.alter_actions import defined_columns, split_at_commas
from replicator.ddl.parser.statement import ParsedStatement, Span, StatementKind, TableRole
from replicator.ddl.parser.tokens import Token, TokenKind
from replicator.mysql.names import TableName

Edit = tuple[Span, str]
"""A part of a statement and its new text."""

TRANSACTIONAL = frozenset({"INNODB", "INNOBASE", "NDB", "NDBCLUSTER", "ROCKSDB", "TOKUDB"})
"""Storage engines, in capitals, that can roll back."""

REPLACED = frozenset({"ARCHIVE", "ARIA", "CSV", "HEAP", "MARIA", "MEMORY", "MYISAM"})
"""Storage engines, in capitals, that keep their own rows on the server and cannot roll back."""

MERGING = frozenset({"MERGE", "MRG_MYISAM"})
"""Storage engines, in capitals, that show the rows of other tables of the server."""

REPLACEMENT = "InnoDB"
"""The engine that replaces the engines in `REPLACED`."""

PHYSICAL = frozenset(
    {
        *("AUTOEXTEND_SIZE", "AVG_ROW_LENGTH", "CHECKSUM", "COMPRESSION", "DELAY_KEY_WRITE"),
        *("ENCRYPTED", "ENCRYPTION", "ENCRYPTION_KEY_ID", "ENGINE_ATTRIBUTE", "KEY_BLOCK_SIZE"),
        *("MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PAGE_CHECKSUM", "PAGE_COMPRESSED"),
        *("PAGE_COMPRESSION_LEVEL", "ROW_FORMAT", "SECONDARY_ENGINE_ATTRIBUTE", "TRANSACTIONAL"),
    }
)
"""Options about how a server stores a table, which change neither structure nor rows."""

STATISTICS = frozenset({"STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES"})
"""Options about the server's statistics of the table; an existing target does not get them."""

_DEFINING = (StatementKind.CREATE_TABLE, StatementKind.ALTER_TABLE)
_QUERIES = frozenset({"SELECT", "TABLE", "VALUES"})
_PARTITIONS = frozenset({"PARTITION", "SUBPARTITION"})
_ACTIONS = frozenset(
    {"ADD", "ALTER", "CHANGE", "CONVERT", "DISCARD", "DROP", "IMPORT", "MODIFY", "ORDER", "RENAME"}
)
"""First words of ALTER TABLE actions in which other words can be names of columns."""

_SWITCHES = (("FORCE",), ("DISABLE", "KEYS"), ("ENABLE", "KEYS"))
"""Actions of ALTER TABLE that change nothing permanently."""

_SAFE_VALUE = re.compile(r"[\w.-]*")
_ANY_VALUE = (TokenKind.WORD, TokenKind.QUOTED, TokenKind.STRING, TokenKind.NUMBER)
_WORD_OPERATORS = frozenset({"AND", "BETWEEN", "DIV", "IN", "IS", "LIKE", "MOD", "NOT", "OR"})


def engines(statement: ParsedStatement) -> list[Token]:
    """Return the names of storage engines in a statement, of the table and of its partitions."""
    found = []
    for tokens, place in _options(statement):
        if tokens[place].keyword == "ENGINE":
            found += [t for t in _values(tokens, place + 1)[:1] if _names_engine(t)]
    return found


def engine_name(token: Token) -> str:
    """Return the name in a token of `engines`, in capitals."""
    return token.text.strip("'\"`").upper()


def foreign_engine(statement: ParsedStatement) -> str:
    """Return an engine in the statement that may not keep the table's rows on the target; else "".

    FEDERATED, CONNECT, SPIDER and similar engines read other servers and files; BLACKHOLE keeps no
    rows. Engines in `MERGING` are not included.
    """
    known = TRANSACTIONAL | REPLACED | MERGING
    names = (engine_name(token) for token in engines(statement))
    return next((name for name in names if name not in known), "")


def foreign_rows(engine: str) -> str:
    """Return the explanation of a `foreign_engine`, as the end of a sentence about a table."""
    return (
        f"storage engine is {engine}: its rows may be those of another server, of a file or of"
        " other tables, or nowhere, and whoever writes them need not write to this binlog. The"
        " target would not get such a table"
    )


def place_edits(statement: ParsedStatement, also: Set[str] = frozenset()) -> list[Edit]:
    """Return edits after which a statement names no place outside of its table.

    They remove DATA DIRECTORY, INDEX DIRECTORY, TABLESPACE, CONNECTION, UNION and INSERT_METHOD, of
    the table and of its partitions. For an engine that keeps its own rows, these options are only
    places, and change neither structure nor rows. An ALTER TABLE action that consists only of such
    options is removed with its comma.

    Args:
        also: further options to remove, each a word with one value.
    """

    def length(tokens: Sequence[Token], place: int) -> int:
        if tokens[place].keyword in also:
            return _with_value(tokens, place, 1, *_ANY_VALUE)
        return _place_length(tokens, place)

    return _cuts(statement, length)


def physical_edits(statement: ParsedStatement) -> list[Edit]:
    """Return edits after which the server decides how to store the statement's table.

    They remove the `PHYSICAL` and `STATISTICS` options; from an ALTER TABLE also the engine,
    rebuilds, the counter and switches of keys. An engine that keeps its rows elsewhere is not
    removed.
    """
    altering = statement.kind is StatementKind.ALTER_TABLE
    numbers = any(
        token.keyword == "AUTO_INCREMENT"
        for _, _, definition in defined_columns(statement)
        for token in definition
    )

    def length(tokens: Sequence[Token], place: int) -> int:
        word = tokens[place].keyword
        if word in PHYSICAL | STATISTICS:
            return _with_value(tokens, place, 1, *_ANY_VALUE)
        if not altering:
            return 0
        for switch in _SWITCHES:
            words = tuple(token.keyword for token in tokens[place : place + len(switch)])
            if words == switch:
                return len(switch)
        # A new AUTO_INCREMENT column starts at the counter.
        if word == "AUTO_INCREMENT" and not numbers:
            return _with_value(tokens, place, 1, TokenKind.NUMBER)
        return _engine_length(tokens, place) if word == "ENGINE" else 0

    return _cuts(statement, length)


def physical_options(statement: ParsedStatement) -> tuple[TableOption, ...]:
    """Return the options by which a CREATE or ALTER TABLE decides how its table is stored, as SQL.

    These are the `PHYSICAL` options, the `STATISTICS` options if the statement is a CREATE, and an
    engine other than InnoDB that can roll back. Returns nothing if the statement names an engine in
    `REPLACED`, since the options have another meaning for another engine.
    """
    if any(engine_name(token) in REPLACED for token in engines(statement)):
        return ()
    creates = statement.kind is StatementKind.CREATE_TABLE
    names = PHYSICAL | STATISTICS if creates else PHYSICAL
    found: dict[str, str] = {}
    for tokens, place in _options(statement):
        name = tokens[place].keyword
        engine = name == "ENGINE" and _engine_length(tokens, place)
        if _depth(tokens, place) or not (engine or name in names):
            continue
        for token in _values(tokens, place + 1)[:1]:
            text = token.text.strip("'\"`")
            if engine and text.upper() not in TRANSACTIONAL - {"INNODB", "INNOBASE"}:
                continue
            if token.kind in _ANY_VALUE and _SAFE_VALUE.fullmatch(text):
                plain = token.kind in (TokenKind.WORD, TokenKind.NUMBER)
                found[name] = text.upper() if plain else f"'{text}'"
    return tuple(TableOption(name, value) for name, value in found.items())


def _engine_length(tokens: Sequence[Token], place: int) -> int:
    """Return the number of tokens of the table's ENGINE if it keeps rows on its server, or 0."""
    known = [
        t for t in _values(tokens, place + 1)[:1] if engine_name(t) in TRANSACTIONAL | REPLACED
    ]
    return 0 if _depth(tokens, place) or not known else _with_value(tokens, place, 1, *_ANY_VALUE)


def _depth(tokens: Sequence[Token], place: int) -> int:
    texts = [token.text for token in tokens[:place]]
    return texts.count("(") - texts.count(")")


def _cuts(statement: ParsedStatement, length: Callable[[Sequence[Token], int], int]) -> list[Edit]:
    """Return edits that remove options and their commas.

    ``length``: returns the length in tokens of an option to remove, or 0.
    """
    removed: set[int] = set()
    for tokens, place in _options(statement):
        found = length(tokens, place)
        removed |= {token.start for token in tokens[place : place + found]}
    if not removed:
        return []
    omitted = {t.start for t in statement.tokens if _is_omitted(statement, t)}
    # Remove word by word: an executable comment may begin or end between two words.
    edits = [
        (
            Span(_with_spaces(statement.sql, token.start), token.end),
            _apart(statement.sql, token.end),
        )
        if following is None or following.start not in removed
        else (Span(_with_spaces(statement.sql, token.start), token.end), "")
        for token, following in pairwise([*statement.tokens, None])
        if token is not None and token.start in removed
    ]
    return [*edits, *_commas(statement, removed | omitted)]


def _with_spaces(sql: str, start: int) -> int:
    while sql[start - 1] == " ":
        start -= 1
    return start


def _apart(sql: str, end: int) -> str:
    return " " if sql[end : end + 1].strip(" \t\r\n,)") else ""


def _options(statement: ParsedStatement) -> Iterator[tuple[Sequence[Token], int]]:
    """Yield each place, as tokens and index, where an option of the table may begin.

    Includes the options of partitions.
    """
    for piece in _pieces(statement):
        proper = [token for token in piece if not _is_omitted(statement, token)]
        altering = statement.kind is StatementKind.ALTER_TABLE
        acts = altering and bool(proper) and proper[0].keyword in _ACTIONS
        groups = [not acts]
        for place, token in enumerate(proper):
            if token.text == ")" and len(groups) > 1:
                groups.pop()
            before = proper[place - 1].keyword if place else ""
            if groups[-1] and before not in _PARTITIONS:
                yield proper, place
            if token.text == "(":
                inside = proper[place + 1].keyword if place + 1 < len(proper) else ""
                groups.append(inside in _PARTITIONS)


def _pieces(statement: ParsedStatement) -> list[list[Token]]:
    """Return the result of `table_options`, split at commas."""
    pieces: list[list[Token]] = [[]]
    depth = 0
    for token in table_options(statement):
        depth += (token.text == "(") - (token.text == ")")
        if token.text == "," and depth == 0:
            pieces.append([])
        else:
            pieces[-1].append(token)
    return pieces


def table_options(statement: ParsedStatement) -> list[Token]:
    """Return the tokens after the columns of a CREATE TABLE, or after the name in an ALTER TABLE.

    The query of a CREATE TABLE … SELECT is not included.
    """
    if statement.kind not in _DEFINING or not statement.named(TableRole.SUBJECT):
        return []
    subject = statement.named(TableRole.SUBJECT)[0]
    left = [token for token in statement.tokens if token.start >= subject.span.end]
    creates = statement.kind is StatementKind.CREATE_TABLE
    depth = 0
    columns = creates and bool(left) and left[0].text == "("
    found: list[Token] = []
    for token, following in pairwise([*left, None]):
        assert token is not None
        depth += (token.text == "(") - (token.text == ")")
        if columns:
            columns = depth > 0
            continue
        opens_query = token.text == "(" and following is not None and _queries(following)
        if creates and statement.as_select and (_queries(token) or opens_query):
            break
        found.append(token)
    return found


def _queries(token: Token) -> bool:
    return token.keyword in _QUERIES


def _commas(statement: ParsedStatement, gone: set[int]) -> Iterator[Edit]:
    """Yield edits that remove one comma for each part without remaining tokens."""
    depth = 0
    commas = []
    for token in table_options(statement):
        depth += (token.text == "(") - (token.text == ")")
        if token.text == "," and depth == 0:
            commas.append(token)
    empty = [all(token.start in gone for token in piece) for piece in _pieces(statement)]
    first = next((number for number, is_empty in enumerate(empty) if not is_empty), len(empty))
    for number, is_empty in enumerate(empty):
        at = number - 1 if number > first else number
        if is_empty and at < len(commas):
            yield Span(commas[at].start, commas[at].end), ""


def _place_length(tokens: Sequence[Token], place: int) -> int:
    """Return the number of tokens of an option that names a place; 0 for any other text."""
    word = tokens[place].keyword
    before = tokens[place - 1].keyword if place else ""
    if word in ("DATA", "INDEX") and _keyword(tokens, place + 1) == "DIRECTORY":
        return _with_value(tokens, place, 2, TokenKind.STRING)
    if word == "CONNECTION":
        return _with_value(tokens, place, 1, TokenKind.STRING)
    if word == "INSERT_METHOD":
        return _with_value(tokens, place, 1, TokenKind.WORD)
    if word == "TABLESPACE" and before not in ("DISCARD", "IMPORT"):
        return _with_value(tokens, place, 1, *_ANY_VALUE)
    if word == "UNION":
        return _with_list(tokens, place)
    return 0


def _with_value(tokens: Sequence[Token], place: int, size: int, *kinds: TokenKind) -> int:
    values = _values(tokens, place + size)
    if not values or values[0].kind not in kinds or values[0].keyword in _WORD_OPERATORS:
        return 0
    return next(n for n, token in enumerate(tokens) if token is values[0]) - place + 1


def _with_list(tokens: Sequence[Token], place: int) -> int:
    depth = 0
    for number, token in enumerate(tokens[place + 1 :], start=place + 1):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.text != "=":
            return number - place + 1 if token.text == ")" else 0
    return 0


def _values(tokens: Sequence[Token], place: int) -> Sequence[Token]:
    return tokens[place + (tokens[place].text == "=") :] if place < len(tokens) else ()


def _names_engine(token: Token) -> bool:
    return token.kind is not TokenKind.OPERATOR and token.keyword not in _WORD_OPERATORS


def _keyword(tokens: Sequence[Token], place: int) -> str:
    return tokens[place].keyword if place < len(tokens) else ""


def _is_omitted(statement: ParsedStatement, token: Token) -> bool:
    return any(span.start <= token.start < span.end for span in statement.omitted)


def storage_edits(statement: ParsedStatement) -> list[tuple[Span, str]]:
    """Return edits after which a table can roll back and its statement names no place outside."""
    return [*engine_edits(statement), *place_edits(statement)]


def engine_edits(statement: ParsedStatement) -> list[Edit]:
    """Return edits that replace the engines of a table and its partitions by InnoDB.

    They replace each engine that cannot roll back, or that servers may lack.
    """
    usual = REPLACED | TRANSACTIONAL - {REPLACEMENT.upper()}
    found = [token for token in engines(statement) if engine_name(token) in usual]
    return [(Span(token.start, token.end), REPLACEMENT) for token in found]


def merges_tables(statement: ParsedStatement) -> bool:
    """Whether the table has the rows of other tables instead of its own (ENGINE = MERGE)."""
    return any(engine_name(token) in MERGING for token in engines(statement))


def merged_tables(statement: ParsedStatement) -> tuple[TableName, ...]:
    """Return the tables in the UNION of a MERGE table, as far as the statement names them.

    The names are as written; a table without a schema is in the schema of the MERGE table.
    """
    if statement.kind not in (StatementKind.CREATE_TABLE, StatementKind.ALTER_TABLE):
        return ()
    subject = next(iter(statement.named(TableRole.SUBJECT)), None)
    if subject is None:
        return ()
    options = table_options(statement)
    for place, token in enumerate(options):
        if token.keyword == "UNION":
            rest = [token for token in options[place + 1 :] if token.text != "="]
            end = next((n for n, token in enumerate(rest) if token.text == ")"), 0)
            names = split_at_commas(rest[1:end])
            return tuple(
                TableName(name[0].name if len(name) > 1 else subject.schema, name[-1].name)
                for name in names
            )
    return ()
