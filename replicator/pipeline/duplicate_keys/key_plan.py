"""How the values of a target's unique key are read from one shard, to be compared with others."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from replicator.binlog.errors import BinlogError
from replicator.downstream.rows.literals import field_value
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.column_types import Literal
from replicator.mysql.names import Member, TableName, folded, quote
from replicator.pipeline.copy.copy_plan import Bound, cutting_columns, key_range
from replicator.pipeline.duplicate_keys.key_equality import Comparing, is_number, key_form
from replicator.pipeline.plans.planning import charset_change
from replicator.routing.columns.member_columns import AS_THEY_ARE, MemberColumns
from replicator.rows.values.charsets import codec
from replicator.schema.structure.structure import Column, Table, UniqueKey

_PART = re.compile(r"`((?:[^`]|``)*)`(?:\((\d+)\))?")
_DEFAULT = re.compile(r"\bDEFAULT ('(?:[^'\\]|''|\\.)*'|[-+]?[0-9][^ ,]*|NULL)", re.IGNORECASE)


class UnreadableKeyError(Exception):
    """A key whose values on the target the shards alone do not tell; says why."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One column of a target's key, as a member has it.

    ``selected`` is an item of a SELECT list, ``form`` as `key_form` gives it. ``transcode``: the
    codecs from and to which its text goes. ``comparing`` is set for text, ``charset`` is that of
    the shard.
    """

    selected: bytes
    form: Callable[[bytes], bytes]
    transcode: tuple[str, str] | None = None
    comparing: Comparing | None = None
    charset: str = ""

    def readable(self, field: bytes) -> str:
        """A field for people."""
        value = field_value(field) or b""
        if self.charset:
            with contextlib.suppress(BinlogError):  # Python has no codec for it
                return value.decode(codec(self.charset), "backslashreplace")
        text = value.decode("ascii", "replace")
        return text if value.isascii() and text.isprintable() else "0x" + value.hex()


@dataclass(frozen=True, slots=True)
class KeyRead:
    """A key of a target (``key``, a number) as it is read from a member.

    Rows are read in the order of the columns ``order`` by the index ``index``; both are empty where
    none serves. ``condition``: which rows reach the target, as SQL, empty for all. ``estimate``:
    about how many rows the member has.
    """

    key: int
    member: Member
    table: bytes
    columns: tuple[KeyColumn, ...]
    index: str = ""
    order: tuple[TargetColumn, ...] = ()
    condition: bytes = b""
    estimate: int = 0

    @property
    def selected(self) -> list[bytes]:
        """What is selected: the key's columns, and behind them ``order``, where it is not them."""
        columns, order = [column.selected for column in self.columns], _names(self.order)
        return columns if columns == order else columns + order

    def readable(self, line: bytes) -> str:
        """The key's fields of a row line for people; the line may be cut off."""
        fields = line.split(b"\t")
        return ", ".join(c.readable(f) for c, f in zip(self.columns, fields, strict=False))


def plan_key(
    key: int,
    member: Member,
    structure: Table,
    target: Table,
    unique: UniqueKey,
    *,
    rules: MemberColumns = AS_THEY_ARE,
    condition: str = "",
    estimate: int = 0,
) -> KeyRead | None:
    """How a target's key is read from a shard; None where no row of it can have another's value.

    ``key`` is the number of the key, ``condition`` that of the rows which reach the target, as SQL,
    ``estimate`` about how many the shard has. Raises UnreadableKeyError and
    `replicator.pipeline.plans.planning.PlanError`.
    """
    lengths = _lengths(target, unique)
    columns = []
    for name in unique.columns:
        found = _column(member, structure, target, name, rules)
        if found is None:
            return None
        if folded(name) in lengths:
            selected = b"LEFT(%s,%d)" % (found.selected, lengths[folded(name)])
            found = replace(found, selected=selected)
        columns.append(found)
    by = _own_key(structure, unique) or structure.row_key
    order = cutting_columns(structure, by) if by else ()
    ordered = by is not None and len(order) == len(by.columns)
    return KeyRead(
        key=key,
        member=member,
        table=TableName(structure.schema, structure.name).quoted.encode(),
        columns=tuple(columns),
        index=by.name if by and ordered else "",
        order=order if ordered else (),
        condition=condition.encode(),
        estimate=estimate,
    )


def is_kept_by(structure: Table, target: Table, key: UniqueKey) -> bool:
    """Whether the shard's own keys keep its rows apart in a target's key."""
    wanted = set(map(folded, key.columns))
    return not key.prefix and any(
        not own.prefix and wanted.issuperset(map(folded, own.columns)) and _alike(structure, target)
        for own in structure.keys
    )


def _alike(structure: Table, target: Table) -> bool:
    """Whether the columns of both are compared in the same way."""
    pairs = ((column, target.column(column.name)) for column in structure.columns)
    return all(not c.collation or its is None or c.collation == its.collation for c, its in pairs)


def page_query(read: KeyRead, behind: Bound, rows: int) -> bytes:
    """Selects the next ``rows`` values of a key behind a bound of ``order``, in its order.

    Without an order it selects all values, or ``rows`` of them where that is not 0. Values with a
    NULL are left out: they are equal to none.
    """
    conditions = [column.selected + b" IS NOT NULL" for column in read.columns]
    if read.condition:
        conditions.append(b"(%s)" % read.condition)
    if behind is not None:
        conditions.append(key_range(read.order, behind, b">"))
    where = b" WHERE " + b" AND ".join(conditions)
    return _query(read, read.selected, where) + (b" LIMIT %d" % rows if rows else b"")


def place_query(read: KeyRead, offset: int, *, from_end: bool) -> bytes:
    """Selects the ``order`` of the row that comes ``offset`` rows behind the first or last one."""
    way = b" DESC" if from_end else b""
    return _query(read, _names(read.order), way=way) + b" LIMIT 1 OFFSET %d" % offset


def _query(read: KeyRead, selected: list[bytes], where: bytes = b"", way: bytes = b"") -> bytes:
    query = b"SELECT %s FROM %s" % (b",".join(selected), read.table)
    if not read.order:
        return query + where
    names = b",".join(name + way for name in _names(read.order))
    index = quote(read.index).encode()
    return query + b" FORCE INDEX (%s)%s ORDER BY %s" % (index, where, names)


def last_place(read: KeyRead, line: bytes) -> Bound:
    """The ``order`` of a row that `page_query` gave."""
    return tuple(line.split(b"\t")[-len(read.order) :])


def _names(columns: tuple[TargetColumn, ...]) -> list[bytes]:
    return [quote(column.name).encode() for column in columns]


def _column(
    member: Member, structure: Table, target: Table, name: str, rules: MemberColumns
) -> KeyColumn | None:
    its = target.column(name)
    if its is None:
        raise UnreadableKeyError(f"it is about an expression, {name}")
    extracted = next((c for c in rules.extracted if folded(c.name) == folded(name)), None)
    if extracted is not None:
        return _constant(member, its, extracted.value)
    column = structure.column(name)
    if column is None:
        default = None if its.auto_increment else _default(target, its)
        return None if default is None else _constant(member, its, default)
    selected = quote(column.name).encode()
    if column.base_type == "float":
        # As text it has six digits, as a DOUBLE all that tell it apart.
        selected += b"*1e0"
    elif column.base_type == "bit" and is_number(its):
        # The shard shows it as bytes.
        selected += b"+0"
    mapped = rules.mapped
    if mapped and folded(mapped.name) == folded(name):
        selected += b"|%d" % mapped.upper
    return _compared(member, column, its, selected)


def _constant(member: Member, its: Column, value: str) -> KeyColumn:
    """A column that is the same in all rows of the member."""
    given = Column(its.name, its.type, "utf8mb4" if its.charset else "")
    return _compared(member, given, its, b"x'%s'" % value.encode().hex().encode())


def _compared(member: Member, column: Column, its: Column, selected: bytes) -> KeyColumn:
    text = its.sql_type.literal in (Literal.TEXT, Literal.ENUM) and bool(its.charset)
    shard = f"{member.source}: {member.name.table}"
    return KeyColumn(
        selected=selected,
        form=key_form(its),
        transcode=charset_change(shard, column, its, "") if text else None,
        comparing=Comparing(its.charset, its.collation) if text else None,
        charset=column.charset,
    )


def _default(target: Table, its: Column) -> str | None:
    """What a column has in all rows of a shard that lacks it: the target's default; None: NULL."""
    if its.generated:
        raise UnreadableKeyError(f"the target computes its column {its.name}")
    for line in target.create_sql.splitlines():
        part = _PART.match(line.strip())
        if part and folded(part[1].replace("``", "`")) == folded(its.name):
            default = _DEFAULT.search(line.strip(), part.end())
            if default:
                text = default[1].strip("'").replace("''", "'")
                return None if default[1].upper() == "NULL" else text
    raise UnreadableKeyError(f"the shard has no column {its.name}, and what fills it is not known")


def _own_key(structure: Table, key: UniqueKey) -> UniqueKey | None:
    wanted = list(map(folded, key.columns))
    for own in structure.keys:
        if not own.prefix and not key.prefix and list(map(folded, own.columns)) == wanted:
            return own
    return None


def _lengths(target: Table, key: UniqueKey) -> dict[str, int]:
    """The characters that a key covers of its columns, where these are not all."""
    if not key.prefix:
        return {}
    head = "PRIMARY KEY" if key.name == "PRIMARY" else f"UNIQUE KEY {quote(key.name)}"
    for line in map(str.strip, target.create_sql.splitlines()):
        if line.startswith(f"{head} ("):
            parts = _PART.findall(line[len(head) :])
            parts = [(folded(name.replace("``", "`")), length) for name, length in parts]
            if [name for name, _ in parts] == list(map(folded, key.columns)):
                return {name: int(length) for name, length in parts if length}
    raise UnreadableKeyError("it is about an expression")
