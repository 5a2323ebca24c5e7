"""How to read the values of a target's unique key from one shard, so that they can be compared."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from replicator.binlog.errors import BinlogError
from replicator.downstream.rows.literals import field_value
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.column_types import Literal
from replicator.mysql.names import Member, TableName, folded
from replicator.pipeline.compare.compare_plan import ComparedTable, ordered_by, shared_order
from replicator.pipeline.compare.compare_structures import ComparedShard
from replicator.pipeline.compare.value_forms import Form, key_form
from replicator.pipeline.copy.copy_plan import cutting_columns, selected_value
from replicator.pipeline.duplicate_keys.text_weights import Comparing
from replicator.pipeline.plans.planning import charset_change
from replicator.rows.values.charsets import codec
from replicator.schema.structure.structure import Column, Table, UniqueKey


class UnreadableKeyError(Exception):
    """The shards alone do not determine a key's values on the target; the message is the reason."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One column of a target's key. ``form`` as `key_form`; ``comparing`` is set for text."""

    form: Form
    comparing: Comparing | None = None

    def readable(self, field: bytes) -> str:
        """Return a field as text for people."""
        value = field_value(field) or b""
        if self.comparing:
            with contextlib.suppress(BinlogError):  # Python has no codec for it
                return value.decode(codec(self.comparing.charset), "backslashreplace")
        text = value.decode("ascii", "replace")
        return text if value.isascii() and text.isprintable() else "0x" + value.hex()


@dataclass(frozen=True, slots=True)
class KeyRead:
    """How a key of a target is read from a member.

    Attributes:
        key: the number of the key.
        table: selects the ``columns`` of the key, for the rows that reach the target. Rows with a
            NULL in the key are left out, since a NULL equals no other value.
        estimate: approximate number of rows of the member.
    """

    key: int
    member: Member
    table: ComparedTable
    columns: tuple[KeyColumn, ...]
    estimate: int = 0

    def readable(self, line: bytes) -> str:
        """Return the key's fields of a row line for people; the line may be cut off."""
        fields = line.split(b"\t")
        return ", ".join(c.readable(f) for c, f in zip(self.columns, fields, strict=False))


def key_order(
    target: Table, unique: UniqueKey, shards: Sequence[ComparedShard]
) -> tuple[TargetColumn, ...]:
    """Return the columns of a target's key by which all shards read the same ranges, by an index.

    The result is empty if there are none; then each shard is read by its `own_order`.
    """
    filled = {folded(column.name) for shard in shards for column in shard.rules.extracted}
    own = tuple(name for name in unique.columns if folded(name) not in filled)
    found = shared_order(target, UniqueKey(unique.name, own), shards, frozenset(map(folded, own)))
    names = [folded(column.name) for column in found]
    for shard in shards:
        keys = [list(map(folded, key.columns)) for key in shard.structure.keys if not key.prefix]
        if unique.prefix or not any(key[: len(names)] == names for key in keys):
            return ()
    return found


def own_order(unique: UniqueKey, shard: ComparedShard) -> tuple[TargetColumn, ...]:
    """Return the leading columns of a target's key that order this shard's rows in an index.

    Other shards may have other orders. The result is empty if there are no such columns.
    """
    made = {folded(column.name) for column in shard.rules.extracted}
    if shard.rules.mapped is not None:
        made.add(folded(shard.rules.mapped.name))
    found: list[TargetColumn] = []
    for column in () if unique.prefix else cutting_columns(shard.structure, unique):
        names = [folded(before.name) for before in (*found, column)]
        keys = [list(map(folded, k.columns)) for k in shard.structure.keys if not k.prefix]
        if names[-1] in made or not any(key[: len(names)] == names for key in keys):
            break
        found.append(column)
    return tuple(found)


def plan_key(
    key: int,
    shard: ComparedShard,
    target: Table,
    unique: UniqueKey,
    order: Sequence[TargetColumn] = (),
    estimate: int = 0,
) -> KeyRead | None:
    """Plan how to read a target's key from a shard.

    Returns None if no row of the shard can have the same value as another. Raises
    UnreadableKeyError and `replicator.pipeline.plans.planning.PlanError`.

    Args:
        key: the number of the key.
        order: the result of `key_order` or `own_order`.
        estimate: approximate number of rows of the shard.
    """
    lengths = _lengths(target, unique)
    selected, columns, transcodes = [], [], []
    for place, name in enumerate(unique.columns):
        its = target.column(name)
        if its is None:
            raise UnreadableKeyError(f"it is about an expression, {name}")
        read = _selected(shard, target, its)
        if read is None:
            return None
        column, expression = read
        if folded(name) in lengths:
            expression = b"LEFT(%s,%d)" % (expression, lengths[folded(name)])
        selected.append(expression)
        text = its.sql_type.literal in (Literal.TEXT, Literal.ENUM) and bool(its.charset)
        codecs = charset_change(str(shard.member), column, its, "") if text else None
        if codecs:
            transcodes.append((place, *codecs))
        comparing = Comparing(its.charset, its.collation) if text else None
        columns.append(KeyColumn(key_form(its), comparing))
    structure = shard.structure
    table = ComparedTable(
        source=shard.member.source,
        name=TableName(structure.schema, structure.name),
        selected=tuple(selected),
        conditions=(
            *(expression + b" IS NOT NULL" for expression in selected),
            *((shard.condition.encode(),) if shard.condition else ()),
        ),
        transcodes=tuple(transcodes),
    )
    table = ordered_by(table, structure, order, shard.rules)
    return KeyRead(key, shard.member, table, tuple(columns), estimate)


def is_kept_by(structure: Table, target: Table, key: UniqueKey) -> bool:
    """Return whether the shard's own keys prevent equal values in a target's key."""
    wanted = set(map(folded, key.columns))
    return not key.prefix and any(
        not own.prefix and wanted.issuperset(map(folded, own.columns)) and _alike(structure, target)
        for own in structure.keys
    )


def _alike(structure: Table, target: Table) -> bool:
    pairs = ((column, target.column(column.name)) for column in structure.columns)
    return all(not c.collation or its is None or c.collation == its.collation for c, its in pairs)


def _selected(shard: ComparedShard, target: Table, its: Column) -> tuple[Column, bytes] | None:
    """Return the column of a shard for a column of the target's key, and its SQL.

    Returns None if the shard has only NULL in it.
    """
    wanted = folded(its.name)
    value = next((c.value for c in shard.rules.extracted if folded(c.name) == wanted), None)
    column = shard.structure.column(its.name)
    if value is None and column is not None:
        return column, selected_value(column, its, shard.rules)
    if value is None and not its.auto_increment:
        value = _default(target, its)
    if value is None:
        return None
    given = Column(its.name, its.type, "utf8mb4" if its.charset else "")
    return given, b"x'%s'" % value.encode().hex().encode()


def _default(target: Table, its: Column) -> str | None:
    """Return the target's default for a column that the shard lacks; None for NULL."""
    if its.generated:
        raise UnreadableKeyError(f"the target computes its column {its.name}")
    definition = target.defined(its.name)
    default = definition.default if definition is not None else None
    if default is not None and default.text.upper() == "NULL":
        return None
    if default is not None and re.match("'|[-+]?[0-9]", default.text):
        return default.text.strip("'").replace("''", "'")
    raise UnreadableKeyError(f"the shard has no column {its.name}, and what fills it is not known")


def _lengths(target: Table, key: UniqueKey) -> dict[str, int]:
    """Return the number of characters that a key covers, for each column that it covers partly."""
    if not key.prefix:
        return {}
    name = "" if key.name == "PRIMARY" else folded(key.name)
    for found in target.definition.keys:
        if found.unique and folded(found.name) == name:
            parts = [(folded(part.column), part.prefix) for part in found.parts]
            if [column for column, _ in parts] == list(map(folded, key.columns)):
                return {column: length for column, length in parts if length}
    raise UnreadableKeyError("it is about an expression")
