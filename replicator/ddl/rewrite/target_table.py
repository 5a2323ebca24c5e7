"""The CREATE TABLE of a target, made from the CREATE TABLE of a shard.

Source: the output of SHOW CREATE TABLE of MySQL 5.6 to 8 and MariaDB 10.x (MySQL manual, "SHOW
CREATE TABLE", "CREATE TABLE Statement"; MariaDB's page "CREATE TABLE"), in a session with an empty
``sql_mode``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import pairwise

from replicator.ddl.model.table import TableOption
from replicator.ddl.parser.definitions import foreign_key_of
from replicator.ddl.parser.statement import ParsedStatement, Span, StatementKind, TableRole
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.parser.tokens import Token, TokenKind
from replicator.ddl.rewrite.default_collations import charset_of, nearest_collation, renamed
from replicator.ddl.rewrite.retarget import foreign_comments, splice
from replicator.ddl.rewrite.storage import (
    TRANSACTIONAL,
    engine_edits,
    engine_name,
    engines,
    foreign_engine,
    foreign_rows,
    physical_edits,
    physical_options,
    place_edits,
)
from replicator.ddl.rewrite.table_sql import foreign_key_sql
from replicator.mysql.names import TableName

Parents = Callable[[str, str], TableName | None]
"""Returns the target of a parent, if any; its arguments are the schema (empty if not written) and
the name."""

_GIVEN_NAME = re.compile(r"_ibfk_\d+$")
"""The end of a name that InnoDB generates for a foreign key from the table's name."""

_COMMENT_END = re.compile(r"\s*\*/")


@dataclass(frozen=True, slots=True)
class CreateTarget:
    """The statement that creates a target's table, and its intended differences from the shard's.

    Attributes:
        foreign_keys: the removed foreign keys, as written.
        kept_keys: the kept foreign keys, with the names of the targets.
        auto_increment: the AUTO_INCREMENT column; empty if there is none. It keeps the attribute,
            but not the counter.
        engine: the shard's storage engine if it was replaced; otherwise empty.
        collations: pairs of the shard's collation and its replacement.
        options: how the shard's server stores the table. The target gets the options that it
            accepts, after its creation.
    """

    sql: str
    foreign_keys: tuple[str, ...] = ()
    kept_keys: tuple[str, ...] = ()
    auto_increment: str = ""
    engine: str = ""
    collations: tuple[tuple[str, str], ...] = ()
    options: tuple[TableOption, ...] = ()


@dataclass(frozen=True, slots=True)
class Collations:
    """Charsets and collations of two servers; all names are in lower case.

    Attributes:
        defaults: the shard server's default collation of each charset. If a statement only names a
            charset, the server chooses the collation, and the choice differs between servers.
        available: all collations of the target's server; None if any collation is accepted.
    """

    defaults: Mapping[str, str] = field(default_factory=dict)
    available: Set[str] | None = None

    def stand_in(self, wanted: str) -> str:
        """Return the collation to use on the target; the wanted one if nothing can replace it."""
        if self.available is None:
            return wanted
        return nearest_collation(wanted, self.available) or wanted


def no_parents(schema: str, table: str) -> TableName | None:
    """Return None for every parent, so that all foreign keys are removed."""
    return None


def target_table(
    create_sql: str,
    schema: str,
    table: str,
    collations: Collations,
    parents: Parents = no_parents,
) -> CreateTarget:
    """Return CREATE TABLE IF NOT EXISTS for ``schema.table``, made from a shard's statement.

    Each charset gets an explicit collation. A collation that the target's server lacks is replaced
    by a binary one, in which texts that differ for the shards are never equal. A storage engine
    that cannot roll back is replaced, also in partitions: otherwise rows and their record could not
    be written in one transaction.

    The result has no foreign keys without an action, no foreign keys whose ``parents`` have no
    target, no AUTO_INCREMENT counter, no tablespaces, file paths or other servers, and no
    `physical_options`. Everything else is kept as written.

    Raises `ValueError` for a text that is not a CREATE TABLE with a list of columns, for a
    `foreign_engine`, and for an invalid name.
    """
    found = classify(create_sql, default_schema=schema)
    if found.kind is not StatementKind.CREATE_TABLE:
        raise ValueError(f"this is no CREATE TABLE statement: {found.detail or create_sql[:200]!r}")
    if named := foreign_engine(found):
        raise ValueError(f"its {foreign_rows(named)}")
    (subject,) = found.named(TableRole.SUBJECT)
    start = sum(token.start < subject.span.end for token in found.tokens)
    items, after = _definitions(found, start)
    pieces = [(subject.span, TableName(schema, table).quoted)]
    if found.guard is not None:
        place = found.guard.position
        pieces.append((Span(place, place), f" {found.guard.clause}"))
    foreign_keys, kept = [], []
    texts = _Texts(collations)
    for before, item in pairwise(items):
        if _is_foreign_key(item) and (key := _kept_key(create_sql, item, parents)):
            pieces.append((Span(item[0].start, item[-1].end), key))
            kept.append(key)
        elif _is_foreign_key(item):
            # Remove the comma before it, too: a column always comes first.
            pieces.append((Span(before[-1].end, item[-1].end), ""))
            foreign_keys.append(create_sql[item[0].start : item[-1].end])
        else:
            pieces += [*texts.edits(item, " "), *_hidden(create_sql, item)]
    pieces += [*texts.edits(items[0], " "), *_hidden(create_sql, items[0])]
    options = found.tokens[after:]
    pieces += texts.edits(_until_partitions(options), "=")
    engine = next((t.text for t in engines(found) if engine_name(t) not in TRANSACTIONAL), "")
    pieces += place_edits(found, {"AUTO_INCREMENT"})
    pieces += [*engine_edits(found), *physical_edits(found), *foreign_comments(found)]
    return CreateTarget(
        sql=splice(create_sql, pieces),
        foreign_keys=tuple(foreign_keys),
        kept_keys=tuple(kept),
        auto_increment=next((item[0].name for item in items if _counts_up(item)), ""),
        engine=engine,
        collations=tuple(sorted(texts.replaced)),
        options=physical_options(found),
    )


def _definitions(found: ParsedStatement, start: int) -> tuple[list[list[Token]], int]:
    """Return the tokens of each column, key and constraint, and the index of the next token."""
    items: list[list[Token]] = [[]]
    depth = 0
    for index in range(start, len(found.tokens)):
        token = found.tokens[index]
        if depth == 1 and token.text == ")":
            if not all(items):
                break
            return items, index + 1
        depth -= token.text == ")"
        if depth == 1 and token.text == ",":
            items.append([])
        elif depth:
            items[-1].append(token)
        elif token.text != "(":
            break
        depth += token.text == "("
    raise ValueError(f"the statement has no list of columns: {found.sql[:200]!r}")


def _outermost(tokens: list[Token]) -> Iterator[Token]:
    depth = 0
    for token in tokens:
        depth -= token.text == ")"
        if not depth:
            yield token
        depth += token.text == "("


def _is_foreign_key(item: list[Token]) -> bool:
    words = [token.keyword for token in item[:4]]
    if words[0] == "CONSTRAINT":
        del words[: 1 if words[1:2] == ["FOREIGN"] else 2]
    return words[:2] == ["FOREIGN", "KEY"]


def _kept_key(sql: str, item: list[Token], parents: Parents) -> str:
    """Return a foreign key with an action in the form for the target; "" if it is removed."""
    key = foreign_key_of(sql, item)
    if isinstance(key, str) or not key.acts or key.unknown:
        return ""
    parent = parents(key.parent_schema, key.parent)
    if parent is None:
        return ""
    name = "" if _GIVEN_NAME.search(key.name) else key.name
    return foreign_key_sql(
        replace(key, name=name, parent_schema=parent.schema, parent=parent.table)
    )


def _hidden(sql: str, item: list[Token]) -> Iterator[tuple[Span, str]]:
    """Hide a column that MySQL hides from MariaDB, too.

    MySQL writes INVISIBLE in a comment for the version that introduced it (``/*!80023 INVISIBLE
    */``), which MariaDB ignores. Other servers ignore MariaDB's own comments (its page "Comment
    Syntax").
    """
    if item[0].kind is not TokenKind.QUOTED:
        return
    for token in _outermost(item):
        closed = _COMMENT_END.match(sql, token.end)
        if token.keyword == "INVISIBLE" and closed:
            yield Span(closed.end(), closed.end()), " /*M!100303 INVISIBLE */"


def _counts_up(item: list[Token]) -> bool:
    return any(token.keyword == "AUTO_INCREMENT" for token in list(_outermost(item))[1:])


class _Texts:
    """Edits of the charsets and collations of one statement, and the replaced collations."""

    def __init__(self, collations: Collations) -> None:
        self._collations = collations
        self.replaced: set[tuple[str, str]] = set()

    def edits(self, tokens: list[Token], sign: str) -> Iterator[tuple[Span, str]]:
        """Yield the edits of a column, or of the table's options; ``sign`` comes after COLLATE."""
        own = [token for token in _outermost(tokens) if token.text != "="]
        charset = _value(own, ("CHARSET",)) or _value(own, ("CHARACTER", "SET"))
        collation = _value(own, ("COLLATE",))
        if collation is not None:
            wanted: str | None = collation.name.lower()
        else:
            wanted = self._collations.defaults.get(charset.name.lower()) if charset else None
        if wanted is None:
            return
        name = self._collations.stand_in(wanted)
        if name not in (wanted, renamed(wanted)):
            self.replaced.add((wanted, name))
        if charset is not None and charset_of(name) != charset.name.lower():
            yield Span(charset.start, charset.end), charset_of(name)
        if collation is not None:
            if name != wanted:
                yield Span(collation.start, collation.end), name
        elif charset is not None:
            yield Span(charset.end, charset.end), f" COLLATE{sign}{name}"


def _value(tokens: list[Token], option: tuple[str, ...]) -> Token | None:
    size = len(option)
    for at in range(len(tokens) - size):
        if tuple(token.keyword for token in tokens[at : at + size]) == option:
            return tokens[at + size]
    return None


def _until_partitions(options: tuple[Token, ...]) -> list[Token]:
    words = [token.keyword for token in options]
    return list(options[: words.index("PARTITION") if "PARTITION" in words else None])
