"""Changes of a target's rows as SQL for the shards that the rows belong to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from replicator.downstream.rows.literals import (
    NULL_FIELD,
    converted_literal,
    converted_predicate,
    identifier,
    key_literal,
    row_predicate,
    written_literal,
)
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.names import Member, folded
from replicator.routing.columns.member_columns import MemberColumns
from replicator.rows.values.charsets import encode_label
from replicator.rows.values.fields import escape
from replicator.schema.structure.structure import Table


class UnplacedError(Exception):
    """A change can't be turned into a statement for a shard; the message says why."""


@dataclass(frozen=True, slots=True)
class OwningShard:
    """A shard that rows of a target may belong to.

    Attributes:
        table: the structure of the shard.
        rules: the rules of the task file for its columns.
    """

    member: Member
    table: Table
    rules: MemberColumns

    @property
    def marked(self) -> bool:
        """Whether values in its rows distinguish them from rows of other shards."""
        return bool(self.rules.extracted) or self.rules.mapped is not None


@dataclass(frozen=True, slots=True)
class RowChanged:
    """A change of one row: its lines before and after, without a newline; None for no row."""

    before: bytes | None
    after: bytes | None


@dataclass(slots=True)
class ShardChanges:
    """Makes statements for the shards of one target.

    Attributes:
        key: the names of the target's key columns; empty without a key.
        columns: the columns of a row's line, in their order.
    """

    key: Sequence[str]
    columns: Sequence[TargetColumn]
    shards: Sequence[OwningShard]
    _places: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self._places = {folded(column.name): at for at, column in enumerate(self.columns)}

    def statements(self, change: RowChanged) -> Iterator[tuple[Member, bytes]]:
        """Yield the statements of a change, each with its shard. Raises UnplacedError."""
        old = None if change.before is None else self.owner(change.before)
        new = None if change.after is None else self.owner(change.after)
        if old is not None and new is not None and old.member == new.member:
            assert change.before is not None
            assert change.after is not None
            yield old.member, self._update(old, change.before, change.after)
            return
        found = []
        if old is not None and change.before is not None:
            found.append((old.member, self._delete(old, change.before)))
        if new is not None and change.after is not None:
            found.append((new.member, self._insert(new, change.after)))
        yield from found

    def owner(self, line: bytes) -> OwningShard:
        """Return the shard that a row belongs to. Raises UnplacedError."""
        if len(self.shards) == 1:
            return self.shards[0]
        if not all(shard.marked for shard in self.shards):
            raise UnplacedError("no extracted or mapped column tells which shard owns the row")
        fields = line.split(b"\t")
        found = [shard for shard in self.shards if self._is_of(shard, fields)]
        if len(found) == 1:
            return found[0]
        which = "no shard has" if not found else "several shards have"
        raise UnplacedError(f"{which} the row's values of extracted and mapped columns")

    def _is_of(self, shard: OwningShard, fields: Sequence[bytes]) -> bool:
        for made in shard.rules.extracted:
            at = self._places.get(folded(made.name))
            if at is None:
                return False
            charset = self.columns[at].charset or "utf8mb4"
            if fields[at] != escape(encode_label(made.value, charset)):
                return False
        mapped = shard.rules.mapped
        if mapped is None:
            return True
        at = self._places.get(folded(mapped.name))
        if at is None or not fields[at].isdigit():
            return False
        return mapped.original(int(fields[at])) is not None

    def _own_columns(
        self, shard: OwningShard, fields: Sequence[bytes]
    ) -> Iterator[tuple[TargetColumn, bytes]]:
        """Yield the columns that the shard also has, with its own values. Raises UnplacedError."""
        extracted = {folded(name) for name in shard.rules.extracted_names}
        mapped = shard.rules.mapped
        for column, value in zip(self.columns, fields, strict=True):
            name = folded(column.name)
            own = shard.table.column(column.name)
            if name in extracted and own is None:
                continue
            if own is None:
                raise UnplacedError(f"{shard.member} has no column {column.name}")
            if own.generated:
                continue
            if mapped is not None and name == folded(mapped.name) and value != NULL_FIELD:
                original = mapped.original(int(value))
                if original is None:
                    raise UnplacedError(f"{value.decode()} is no value of {shard.member}")
                value = b"%d" % original
            yield column, value
        named = {folded(column.name) for column in self.columns}
        for own in shard.table.columns:
            if folded(own.name) not in named and not own.generated:
                raise UnplacedError(f"the target has no column {own.name} of {shard.member}")

    def _insert(self, shard: OwningShard, line: bytes) -> bytes:
        pairs = [*self._own_columns(shard, line.split(b"\t"))]
        names = b",".join(identifier(column.name) for column, _ in pairs)
        values = b",".join(_literal(shard, column, value) for column, value in pairs)
        return b"INSERT INTO %s (%s) VALUES (%s)" % (_name(shard), names, values)

    def _delete(self, shard: OwningShard, line: bytes) -> bytes:
        return b"DELETE FROM %s WHERE %s LIMIT 1" % (_name(shard), self._where(shard, line))

    def _update(self, shard: OwningShard, before: bytes, after: bytes) -> bytes:
        changes = b",".join(
            b"%s=%s" % (identifier(column.name), _literal(shard, column, value))
            for column, value in self._own_columns(shard, after.split(b"\t"))
        )
        where = self._where(shard, before)
        return b"UPDATE %s SET %s WHERE %s LIMIT 1" % (_name(shard), changes, where)

    def _where(self, shard: OwningShard, line: bytes) -> bytes:
        pairs = [*self._own_columns(shard, line.split(b"\t"))]
        key = {folded(name) for name in self.key}
        keyed = [(column, value) for column, value in pairs if folded(column.name) in key]
        if not keyed:
            return b" AND ".join(_predicate(shard, column, value) for column, value in pairs)
        # The first condition can use an index; the second one compares bytes.
        conditions = (
            condition
            for column, value in keyed
            for condition in (
                identifier(column.name) + b"=" + key_literal(column, value),
                _predicate(shard, column, value),
            )
        )
        return b" AND ".join(dict.fromkeys(conditions))


def _literal(shard: OwningShard, column: TargetColumn, value: bytes) -> bytes:
    if _other_charset(shard, column):
        return converted_literal(column, value)
    return written_literal(column, value)


def _predicate(shard: OwningShard, column: TargetColumn, value: bytes) -> bytes:
    if charset := _other_charset(shard, column):
        return converted_predicate(column, value, charset)
    return row_predicate(column, value)


def _other_charset(shard: OwningShard, column: TargetColumn) -> str:
    own = shard.table.column(column.name)
    texts = own is not None and own.charset and column.charset
    return own.charset if own is not None and texts and own.charset != column.charset else ""


def _name(shard: OwningShard) -> bytes:
    return shard.member.name.quoted.encode()
