"""What differs between the tables of a source and those of its target, as clients see them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, cast

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from replicator.sandbox.server import DatabaseServer

COLUMNS = (
    "SELECT column_name, column_type, character_set_name, collation_name, is_nullable,"
    " column_default, extra, generation_expression, column_comment"
    " FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
    " ORDER BY ordinal_position"
)
KEYS = (
    "SELECT index_name, seq_in_index, non_unique, column_name, sub_part,"
    " IF(index_type IN ('HASH', 'BTREE'), '', index_type)"  # up to the engine
    " FROM information_schema.statistics WHERE table_schema = %s AND table_name = %s"
    " ORDER BY index_name, seq_in_index"
)
FOREIGN_KEYS = (
    "SELECT DISTINCT GROUP_CONCAT(k.column_name ORDER BY k.ordinal_position),"
    " LOWER(k.referenced_table_name),"
    " GROUP_CONCAT(k.referenced_column_name ORDER BY k.ordinal_position),"
    " REPLACE(r.update_rule, 'RESTRICT', 'NO ACTION'),"
    " REPLACE(r.delete_rule, 'RESTRICT', 'NO ACTION')"
    " FROM information_schema.key_column_usage k"
    " JOIN information_schema.referential_constraints r ON r.table_name = k.table_name"
    " AND r.constraint_schema = k.table_schema AND r.constraint_name = k.constraint_name"
    " WHERE k.table_schema = %s AND k.table_name = %s AND k.referenced_table_name IS NOT NULL"
    " GROUP BY k.constraint_name, k.referenced_table_name, r.update_rule, r.delete_rule"
)
"""The foreign keys without their names."""
TABLES = (
    "SELECT table_schema, table_name FROM information_schema.tables"
    " WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED')"
)
PERIOD = (b"ROW START", b"ROW END")
"""How the columns are generated that tell since when a row is there: the target has its own."""

SHOWN = 300
_WIDTH = re.compile(r"\b((?:tiny|small|medium|big)?int)\(\d+\)")
_UTF8 = re.compile(r"\butf8(?=_|$)")


def sense_of(column: Sequence[Any]) -> tuple[Any, ...]:
    """Return a row of `COLUMNS` without what each kind of server writes in its own way."""
    name, kind, charset, collation, nullable, default, extra, formula, comment = column
    words = str(extra).lower().replace("default_generated", "").replace("()", "").split()
    return (
        name,
        _WIDTH.sub(r"\1", str(kind)),
        *(text and _UTF8.sub("utf8mb3", str(text)) for text in (charset, collation)),
        nullable,
        _sense_of_default(default),
        " ".join(words),
        bool(formula),
        comment,
    )


def _sense_of_default(default: Any) -> Any:
    text = "" if default is None else str(default).removesuffix("()")
    if text in ("", "NULL", "''"):
        # MariaDB quotes defaults, and shows one that is NULL as a word.
        return text == "''" or (default is not None and text == "")
    text = text[1:-1] if text.startswith("'") else text
    try:
        return Decimal(text).normalize()
    except InvalidOperation:
        return text.lower() if text.lower() == "current_timestamp" else text


def sense_of_key(part: Sequence[Any]) -> tuple[str, ...]:
    """Return a row of `KEYS` with texts only: TiDB has texts where others have numbers."""
    return tuple(map(str, part))


def without_implicit(
    parts: Iterable[tuple[str, ...]], foreign: Container[str]
) -> list[tuple[str, ...]]:
    """Leave out indexes over the columns of foreign keys, which servers make and drop themselves.

    MariaDB drops such an index as soon as another one begins with its columns, TiDB keeps it.
    ``parts``: rows of `KEYS`, as texts; ``foreign``: the columns of each foreign key.
    """
    indexes: dict[str, list[tuple[str, ...]]] = {}
    for part in parts:
        indexes.setdefault(part[0], []).append(part)
    return [
        part
        for of_index in indexes.values()
        if of_index[0][2] == "0" or ",".join(part[3] for part in of_index) not in foreign
        for part in of_index
    ]


@dataclass(frozen=True)
class Difference:
    """The first thing in which a table differs: `tables`, `columns`, `keys` or `rows`.

    `statements`: how many of the file had been executed when it was seen.
    """

    kind: str
    table: str
    text: str
    statements: int = 0


class Comparison:
    """Compares all tables of a source with those of a target; `schemas` are named otherwise there.

    `without` are schemas that are not looked at, on either side.
    """

    def __init__(
        self,
        source: DatabaseServer,
        target: DatabaseServer,
        schemas: Mapping[str, str],
        without: frozenset[str],
    ) -> None:
        self._source = source
        self._target = target
        self._schemas = schemas
        self._without = without
        self.tables = 0
        self.rows = 0
        self.unread = 0

    def differences(self) -> Iterator[Difference]:
        """At most one for each table; rows that the source does not give are passed over.

        These are of tables that the test has locked or damaged; `unread` counts them.
        """
        with _session(self._source) as source, _session(self._target) as target:
            ours, theirs = self._tables(source), self._tables(target)
            wanted = {(self._schemas.get(s, s), t): (s, t) for s, t in ours}
            for name in sorted(theirs - set(wanted)):
                yield Difference("tables", ".".join(name), "is on the target only")
            for there, here in sorted(wanted.items()):
                if there not in theirs:
                    yield Difference("tables", ".".join(here), "is not on the target")
                    continue
                found = self._table(source, here, target, there)
                if found is not None:
                    yield found

    def _tables(self, connection: Connection[Cursor]) -> set[tuple[str, str]]:
        names = {(_text(s), _text(t)) for s, t in _ask(connection, TABLES)}
        return {(s, t) for s, t in names if s not in self._without}

    def _table(
        self,
        source: Connection[Cursor],
        here: tuple[str, str],
        target: Connection[Cursor],
        there: tuple[str, str],
    ) -> Difference | None:
        self.tables += 1
        columns = _ask(source, COLUMNS, here)
        if not columns:  # it can't be opened: locked, or without its underlying tables
            self.unread += 1
            return None
        shown = [row[0] for row in columns if row[7] not in PERIOD]
        names = ", ".join(_quoted(_text(name)) for name in shown)
        first = None
        for kind, sql in (("columns", COLUMNS), ("keys", KEYS)):
            ours, theirs = _ask(source, sql, here), _ask(target, sql, there)
            if ours != theirs and first is None:
                first = Difference(kind, ".".join(here), _apart(Counter(ours), Counter(theirs)))
        if first is not None and first.kind == "columns":
            known = {row[0] for row in _ask(target, COLUMNS, there)}
            names = ", ".join(_quoted(_text(name)) for name in shown if name in known) or "1"
        try:
            rows = _rows(source, names, here)
        except pymysql.err.MySQLError:
            self.unread += 1
            return first
        try:
            others = _rows(target, names, there)
        except pymysql.err.MySQLError as error:
            return Difference("rows", ".".join(here), f"the target's can't be read: {error}")
        self.rows += rows.total()
        if rows != others:
            text = _apart(rows, others)
            if first is not None:
                text += f" (and in {first.kind}: {first.text})"
            return Difference("rows", ".".join(here), text)
        return first


def _session(server: DatabaseServer) -> Connection[Cursor]:
    """A session in which nothing is converted, and which does not wait for locks."""
    connection = server.connect(charset="latin1", use_unicode=False, conv={})
    with connection.cursor() as cursor:
        cursor.execute("SET NAMES binary, time_zone = '+00:00', sql_mode = ''")
        cursor.execute("SET lock_wait_timeout = 1, innodb_lock_wait_timeout = 1")
    return connection


def _as_bytes(sql: str) -> str:
    """PyMySQL passes bytes on as they are; its types say text."""
    return cast("str", sql.encode("utf-8", "surrogateescape"))


def _ask(connection: Connection[Cursor], sql: str, names: tuple[str, ...] = ()) -> list[Any]:
    with connection.cursor() as cursor:
        # Bytes, since the session has no charset that names could be converted to.
        values = tuple(f"'{_escaped(name)}'" for name in names)
        cursor.execute(_as_bytes(sql % values))
        return list(cursor.fetchall())


def _rows(
    connection: Connection[Cursor], columns: str, table: tuple[str, str]
) -> Counter[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        sql = f"SELECT {columns} FROM {_quoted(table[0])}.{_quoted(table[1])}"
        cursor.execute(_as_bytes(sql))
        return Counter(cursor.fetchall())


def _apart(ours: Counter[Any], theirs: Counter[Any]) -> str:
    missing, extra = list((ours - theirs).items()), list((theirs - ours).items())
    return (
        f"{sum(n for _, n in missing)} missing, {sum(n for _, n in extra)} too many"
        f"; source: {missing[:1]!r:.{SHOWN}} target: {extra[:1]!r:.{SHOWN}}"
        + ("" if missing or extra else " (another order)")
    )


def _text(value: Any) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("'", "''")
