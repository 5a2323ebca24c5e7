"""How to read a shard's rows by the structure it had when its copy began, if it has another now.

Only rows that have not changed since the copy began must be read exactly: the binlog has
every changed row in full, and it is applied later. An unchanged row was altered only by the shard's
own statements, so its former values follow from the columns that now have them. If a row has a
value that no unchanged row can have, the row has changed, and it is left out. The statements are in
the binlog, too, and change the target as they changed the shard.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from replicator.mysql.column_types import sizes
from replicator.mysql.names import TableName, folded, quote
from replicator.rows.values.charsets import encode_label
from replicator.schema.effects.traced_columns import Traced, family
from replicator.schema.structure.structure import (
    Column,
    Table,
    UniqueKey,
    fraction_digits,
    labels_of,
    numbers_of,
)

_BYTES = sizes("text") | sizes("bytes")
_IN_UNICODE = frozenset({"ascii", "latin1", "utf8", "utf8mb3"})
_WIDER = {"utf8mb4": _IN_UNICODE, "utf8mb3": frozenset({"ascii", "latin1"})}
_WIDER["utf8"] = _WIDER["utf8mb3"]
"""By charset: narrower charsets whose texts can be converted to it and back without loss."""


class ChangedTooMuchError(Exception):
    """Rows can't be read by the former structure; the text is the reason, about the shard.

    Attributes:
        by_statements: whether the binlog has the statements that made the change.
        key_dropped: whether rows may have been added to the shard while no key identified them.
    """

    def __init__(
        self, reason: str, *, by_statements: bool = True, key_dropped: bool = False
    ) -> None:
        super().__init__(reason)
        self.by_statements = by_statements
        self.key_dropped = key_dropped


def untraced(trace: Traced) -> ChangedTooMuchError:
    """Return an error that names the statement at which the trace of a shard ends."""
    reason = f"the task does not understand a statement: {trace.trouble}"
    return ChangedTooMuchError(reason, key_dropped=trace.key_dropped is not None)


@dataclass(frozen=True, slots=True)
class ChangedShard:
    """How to read rows of a former structure from the table's present one.

    Attributes:
        expressions: by the folded name of a former column, the SQL for its value; None if the
            column was dropped.
        conditions: SQL conditions that leave out changed rows.
        names: the present names of the former columns.
        key_name: present name of the unique key that identified a row; empty if there was none.
        same: whether the table has only former columns, each unchanged; some may be dropped.
    """

    name: TableName
    expressions: Mapping[str, bytes | None]
    conditions: tuple[bytes, ...]
    names: Mapping[str, str]
    key_name: str
    same: bool


def changed_shard(former: Table, present: Table, trace: Traced, target: Table) -> ChangedShard:
    """Return how to read rows of the structure ``former`` from the table ``present``.

    Raises ChangedTooMuchError.
    """
    if trace.trouble:
        raise untraced(trace)
    if former.transactional != present.transactional:
        raise ChangedTooMuchError("its storage engine has changed to one of another kind")
    columns: dict[str, Column | None] = {}
    for name, found_as in trace.columns.items():
        columns[name] = None if found_as is None else present.column(found_as)
        if found_as is not None and columns[name] is None:
            raise ChangedTooMuchError(
                f"its column {name} does not exist any more, and the binlog has no statement that"
                " drops it",
                by_statements=False,
            )
    key_name = _check_keys(former, present, columns, target)
    keys = (*former.keys, *target.keys)
    keyed = {folded(name) for key in keys for name in key.columns}
    expressions: dict[str, bytes | None] = {}
    conditions: list[bytes] = []
    same = trace.name == TableName(former.schema, former.name)
    for column in former.columns:
        name, now = folded(column.name), columns[folded(column.name)]
        if now is None:
            expressions[name] = None
            continue
        expressions[name], found = _read(column, now, name in keyed)
        conditions += found
        same &= folded(now.name) == name and _shape(column) == _shape(now)
    names = {name: column.name for name, column in columns.items() if column is not None}
    same &= len(names) == len(present.columns)
    return ChangedShard(trace.name, expressions, tuple(conditions), names, key_name, same)


def filler(column: Column) -> bytes:
    """Return the SQL value for a target's column that the shard has dropped and the target has not.

    Raises ChangedTooMuchError for a type without such a value.
    """
    if column.nullable:
        return b"NULL"
    if column.base_type == "enum":
        return b"x'%s'" % encode_label(labels_of(column)[0], column.charset).hex().encode()
    if column.sql_type.filler:
        return column.sql_type.filler.encode()
    raise ChangedTooMuchError(
        f"its column {column.name} is dropped, and the target's needs a value of {column.type}"
    )


def _check_keys(
    former: Table, present: Table, columns: Mapping[str, Column | None], target: Table
) -> str:
    """Return the present name of the key that identified a row.

    Raises ChangedTooMuchError if a key of both shard and target was dropped: rows changed since
    then could replace other rows on the target.
    """
    key_name = ""
    theirs = [_names(key) for key in target.keys]
    for key in former.keys:
        if key is not former.row_key and _names(key) not in theirs:
            continue
        now = [columns[folded(name)] for name in key.columns]
        dropped = [name for name, column in zip(key.columns, now, strict=True) if column is None]
        nulls = [c for name in dropped if (c := target.column(name)) is not None and c.nullable]
        if dropped and key is not former.row_key and len(nulls) == len(dropped):
            continue
        wanted = [folded(column.name) for column in now if column is not None]
        found = next(
            (
                k
                for k in present.keys
                if [folded(name) for name in k.columns] == wanted
                and (k.nullable, k.prefix) == (key.nullable, key.prefix)
            ),
            None,
        )
        if dropped or found is None:
            raise ChangedTooMuchError(
                f"its unique key {key.name} ({', '.join(key.columns)}) has changed"
            )
        if key is former.row_key:
            key_name = found.name
    return key_name


def _names(key: UniqueKey) -> frozenset[str]:
    return frozenset(map(folded, key.columns))


def _shape(column: Column) -> tuple[object, ...]:
    return column.type, column.charset, column.collation, column.nullable, column.generated


def _read(former: Column, now: Column, in_key: bool) -> tuple[bytes, list[bytes]]:
    """Return the SQL for an unchanged row's value, and the conditions that every such row meets."""
    name = quote(now.name).encode()
    if _shape(former) == _shape(now):
        return name, []
    if former.generated or now.generated or family(former.base_type) != family(now.base_type):
        raise _another_type(former, now)
    if in_key and former.collation != now.collation:
        raise ChangedTooMuchError(
            f"its column {former.name}, which is part of a unique key, is compared by"
            f" {now.collation}, no longer by {former.collation}"
        )
    expression, conditions = name, list[bytes]()
    if (former.type, former.charset) != (now.type, now.charset):
        expression, conditions = _of_family(former, now, name)
    if former.nullable:
        conditions = [b"(%s IS NULL OR %s)" % (name, condition) for condition in conditions]
    elif now.nullable:
        conditions = [b"%s IS NOT NULL" % name, *conditions]
    return expression, conditions


def _of_family(former: Column, now: Column, name: bytes) -> tuple[bytes, list[bytes]]:
    numbers = numbers_of(former)
    match family(former.base_type):
        case "integer":
            bits = 8 * former.sql_type.size
            low, high = (0, 1 << bits) if former.unsigned else (-(1 << bits - 1), 1 << bits - 1)
            return name, [b"%s BETWEEN %d AND %d" % (name, low, high - 1)]
        case "decimal":
            unsigned = [b"%s>=0" % name] if former.unsigned else []
            cast = b"CAST(%s AS DECIMAL(%d,%d))" % (name, numbers[0], numbers[1])
            return cast, [b"%s=%s" % (name, cast), *unsigned]
        case "text":
            return _of_text(former, now, name)
        case "bytes":
            return name, [b"OCTET_LENGTH(%s)<=%d" % (name, _length(former))]
        case "enum" | "set" if (former.charset, former.collation) == (now.charset, now.collation):
            before, after = labels_of(former), labels_of(now)
            if after[: len(before)] == before:
                last = len(before) if former.base_type == "enum" else (1 << len(before)) - 1
                return name, [b"%s+0<=%d" % (name, last)]
            if before[: len(after)] == after:
                return name, []
        case "time" | "datetime" | "timestamp":
            step = 10 ** (6 - fraction_digits(former))
            return name, [b"COALESCE(MICROSECOND(%s),0)%%%d=0" % (name, step)]
    raise _another_type(former, now)


def _of_text(former: Column, now: Column, name: bytes) -> tuple[bytes, list[bytes]]:
    expression, conditions = name, []
    if former.charset != now.charset:
        if former.charset not in _WIDER.get(now.charset, frozenset()):
            raise _another_type(former, now)
        expression = b"CONVERT(%s USING %s)" % (name, former.charset.encode())
        back = b"CONVERT(%s USING %s)" % (expression, now.charset.encode())
        conditions.append(b"CAST(%s AS BINARY)=CAST(%s AS BINARY)" % (name, back))
    measure = b"OCTET_LENGTH" if former.base_type in _BYTES else b"CHAR_LENGTH"
    return expression, [*conditions, b"%s(%s)<=%d" % (measure, expression, _length(former))]


def _length(column: Column) -> int:
    return _BYTES[column.base_type] if column.base_type in _BYTES else numbers_of(column)[0]


def _another_type(former: Column, now: Column) -> ChangedTooMuchError:
    return ChangedTooMuchError(
        f"its column {former.name} was {_described(former)} and is {_described(now)} now: its"
        " former values do not follow from the present ones"
    )


def _described(column: Column) -> str:
    charset = f" CHARACTER SET {column.charset}" if column.charset else ""
    generated = " (generated)" if column.generated else ""
    return f"{column.type}{charset}{generated}"
