"""From the CREATE TABLE statement of a shard to that of the table it is merged into.

Written after what SHOW CREATE TABLE of MySQL 5.6 to 8 and MariaDB 10.x gives (MySQL manual, "SHOW
CREATE TABLE", "CREATE TABLE Statement"; MariaDB's page "CREATE TABLE"), in a session whose
``sql_mode`` is empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from itertools import pairwise

from replicator.ddl.model.table import TableOption
from replicator.ddl.parser.classify import classify
from replicator.ddl.parser.definitions import foreign_key_of
from replicator.ddl.parser.statement import ParsedStatement, Span, StatementKind, TableRole
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
"""From the schema (empty if it is not written) and the name of a parent to its target; None if it
has none."""

_GIVEN_NAME = re.compile(r"_ibfk_\d+$")
"""A name that InnoDB gives to a foreign key without one, by the name of the table."""

_COMMENT_END = re.compile(r"\s*\*/")


@dataclass(frozen=True, slots=True)
class CreateTarget:
    """The statement that makes a target's table, and what differs from the shard's on purpose.

    ``foreign_keys`` are the definitions left out, as they were written; ``kept_keys`` those that it
    has, with the names of the targets. ``auto_increment`` is the
    column that counts up, empty where none does: the attribute is kept, the counter is not.
    ``engine`` is the shard's storage engine where another one took its place, else empty.
    ``collations`` are pairs of the shard's collation and the one that took its place. ``options``
    say how the shard's server stores the table: the target gets those that it accepts, afterwards.
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
    """What two servers understand by charsets and collations; names in lower case.

    ``defaults`` are those of the shard's server, by charset: where a statement names a charset
    only, it is the server that decides on the collation, and others decide differently.
    ``available`` are all that the target's server has; None: those that are wanted.
    """

    defaults: Mapping[str, str] = field(default_factory=dict)
    available: Set[str] | None = None

    def stand_in(self, wanted: str) -> str:
        """The collation to name to the target; the wanted one also where there is none for it."""
        if self.available is None:
            return wanted
        return nearest_collation(wanted, self.available) or wanted


def no_parents(schema: str, table: str) -> TableName | None:
    """The parents of a table whose foreign keys are all left out."""
    return None


def target_table(
    create_sql: str,
    schema: str,
    table: str,
    collations: Collations,
    parents: Parents = no_parents,
) -> CreateTarget:
    """Return CREATE TABLE IF NOT EXISTS for ``schema.table``, made from a shard's statement.

    Each charset gets its collation written out; one that the target's server lacks is replaced by a
    binary one, which makes no two texts equal that differ for the shards. Left out are foreign keys
    without an action, and those whose ``parents`` have no target; the counter of AUTO_INCREMENT,
    its tablespaces, places in its file system and other servers, and `physical_options`. A storage
    engine that can't roll
    back is replaced, in the partitions, too: rows could not be written in one transaction with the
    record of them. All else stays as it was written. Raises `ValueError` for text that is no CREATE
    TABLE with a list of columns, for a `foreign_engine`, and for an impossible name.
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
            # The comma before it goes, too: a column always comes first.
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
    """The tokens of each column, key and constraint; the index of the token behind the list."""
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
    """The tokens that stand in no parentheses."""
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
    """The definition of a key with an action for the target; empty if it is left out."""
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
    """A column that MySQL hides from MariaDB, too: for that, the word stands in a comment of the
    version that brought it (``/*!80023 INVISIBLE */``), which MariaDB leaves out. MariaDB's own
    comments are left out by all others (its page "Comment Syntax")."""
    if item[0].kind is not TokenKind.QUOTED:
        return
    for token in _outermost(item):
        closed = _COMMENT_END.match(sql, token.end)
        if token.keyword == "INVISIBLE" and closed:
            yield Span(closed.end(), closed.end()), " /*M!100303 INVISIBLE */"


def _counts_up(item: list[Token]) -> bool:
    return any(token.keyword == "AUTO_INCREMENT" for token in list(_outermost(item))[1:])


class _Texts:
    """The edits to the charsets and collations of one statement, and what was replaced."""

    def __init__(self, collations: Collations) -> None:
        self._collations = collations
        self.replaced: set[tuple[str, str]] = set()

    def edits(self, tokens: list[Token], sign: str) -> Iterator[tuple[Span, str]]:
        """Those of a column, or of the table's options; ``sign`` stands behind COLLATE."""
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
    """The token behind the first place of these words."""
    size = len(option)
    for at in range(len(tokens) - size):
        if tuple(token.keyword for token in tokens[at : at + size]) == option:
            return tokens[at + size]
    return None


def _until_partitions(options: tuple[Token, ...]) -> list[Token]:
    words = [token.keyword for token in options]
    return list(options[: words.index("PARTITION") if "PARTITION" in words else None])
