"""The tables of a random history: what they have, and the statements that change them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random

_DEFAULTS = {
    "INT": "7",
    "BIGINT": "8",
    "VARCHAR": "'x'",
    "CHAR": "'y'",
    "DECIMAL": "1.50",
    "DATETIME": "'2021-01-01 00:00:00'",
    "ENUM": "'b'",
    "DOUBLE": "2",
    "TEXT": "",
    "VARBINARY": "",
}
_OTHERS = {
    "INT": ("BIGINT", "DECIMAL(20,0)", "INT"),
    "BIGINT": ("INT", "BIGINT"),
    "VARCHAR(40)": ("VARCHAR(80)", "TEXT", "VARCHAR(30)"),
    "VARCHAR(80)": ("VARCHAR(120)", "VARCHAR(40)"),
    "CHAR(12)": ("VARCHAR(40)", "CHAR(20)"),
    "TEXT": ("MEDIUMTEXT",),
    "DATETIME": ("DATETIME(3)",),
    "DECIMAL(12,2)": ("DECIMAL(16,4)", "DECIMAL(10,2)"),
    "ENUM('a','b')": ("ENUM('a','b','c')",),
    "DOUBLE": ("DOUBLE",),
    "VARBINARY(40)": ("VARBINARY(60)", "BLOB"),
}
"""The types of columns, each with those that it may get, and that all generated rows fit."""
_NUMBERS = ("INT", "BIGINT", "DECIMAL")
_DISTINCT = ("INT", "BIGINT", "VARCHAR")
_KEYABLE = (*_NUMBERS, "VARCHAR", "CHAR", "DATETIME")
_ACTS = ("", " ON DELETE CASCADE", " ON DELETE SET NULL", " ON UPDATE CASCADE")
_IDLE = ("DISABLE KEYS", "ENABLE KEYS", "ENGINE=InnoDB", "FORCE", "ROW_FORMAT=DYNAMIC")


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `distinct`: no two rows of any shards have the same value."""

    name: str
    kind: str
    null: bool = True
    default: str = ""
    comment: str = ""
    distinct: bool = False

    @property
    def base(self) -> str:
        """The type without its length."""
        return self.kind.partition("(")[0].partition(" ")[0]

    @property
    def sql(self) -> str:
        """The definition for CREATE and ALTER TABLE."""
        parts = [self.name, self.kind, "" if self.null else "NOT NULL"]
        parts += [f"DEFAULT {self.default}"] if self.default else []
        parts += [f"COMMENT '{self.comment}'"] if self.comment else []
        return " ".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class Part:
    """A key, a CHECK or a foreign key.

    Attributes:
        dropped: what ALTER TABLE … DROP calls it.
        left_by_key: an index that is left of a foreign key.
    """

    name: str
    dropped: str
    columns: tuple[str, ...]
    unique: bool = False
    parent: str = ""
    acts: str = ""
    left_by_key: bool = False

    @property
    def sql(self) -> str:
        """The definition for CREATE and ALTER TABLE."""
        names = ", ".join(self.columns)
        if self.dropped == "INDEX":
            return f"{'UNIQUE ' if self.unique else ''}KEY {self.name} ({names})"
        if self.dropped == "CONSTRAINT":
            return f"CONSTRAINT {self.name} CHECK ({names} >= 0)"
        refers = f"FOREIGN KEY ({names}) REFERENCES {self.parent} (id){self.acts}"
        return f"CONSTRAINT {self.name} {refers}"


@dataclass(frozen=True, slots=True)
class Table:
    """A table. Its first column is `id`, the primary key."""

    name: str
    columns: tuple[Column, ...]
    parts: tuple[Part, ...] = ()
    comment: str = ""

    @property
    def sql(self) -> str:
        """The statement that creates the table."""
        key, *others = (column.sql for column in self.columns)
        inside = [f"{key} PRIMARY KEY", *others, *(part.sql for part in self.parts)]
        comment = f" COMMENT='{self.comment}'" if self.comment else ""
        return f"CREATE TABLE {self.name} ({', '.join(inside)}){comment}"

    @property
    def parents(self) -> set[str]:
        """The tables that the foreign keys refer to."""
        return {part.parent for part in self.parts if part.parent}

    def free(self, *besides: str) -> list[Column]:
        """The columns but the key that only parts of the kinds `besides` use."""
        parts = [part for part in self.parts if part.dropped not in besides]
        used = {name for part in parts for name in part.columns}
        return [column for column in self.columns[1:] if column.name not in used]

    def with_column(self, old: Column, new: Column | None) -> Table:
        """The table with another column in place of one, or with none; keys follow it."""
        columns = [new if one == old else one for one in self.columns]
        names = {old.name: new.name if new else ""}
        parts = [
            replace(part, columns=tuple(name for name in followed if name))
            for part in self.parts
            for followed in [[names.get(name, name) for name in part.columns]]
        ]
        return replace(
            self,
            columns=tuple(column for column in columns if column is not None),
            parts=tuple(part for part in parts if part.columns),
        )


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a table: the statements, and the table after them."""

    statements: tuple[str, ...]
    after: Table


class TableChanges:
    """Draws tables and their changes.

    Args:
        random: source of the choices.
        names: numbers for names, each a new one.
        prefix: of names of foreign keys and CHECKs, which are unique in their schema.
    """

    def __init__(self, random: Random, names: Iterator[int], prefix: str) -> None:
        self._random = random
        self._names = names
        self._prefix = prefix

    def created(self, name: str, parents: list[str]) -> Table:
        """Return a new table, perhaps with a key, a CHECK, a foreign key to one of `parents`."""
        fields = [self._column() for _ in range(self._random.randint(1, 4))]
        fields = [replace(one, distinct=one.base in _DISTINCT) for one in fields]
        key = Column("id", self._random.choice(("INT", "INT", "BIGINT")), False, distinct=True)
        table = Table(name, (key, *fields))
        if parents and self._random.random() < 0.5:
            table = self._with_reference(table, self._random.choice(parents)).after
        for draw in (self._with_key, self._with_check):
            change = draw(table) if self._random.random() < 0.4 else None
            table = change.after if change else table
        return table

    def altered(self, table: Table, parents: list[str], *, referenced: bool) -> Change | None:
        """Return a change of a table, or None if the drawn kind does not fit the table.

        Args:
            table: the table before.
            parents: tables with an INT as key that a new foreign key may refer to.
            referenced: whether other tables refer to this one; its key stays then.
        """
        others = [parent for parent in parents if parent != table.name]
        kinds: list[tuple[int, Callable[[Table], Change | None]]] = [
            (6, self._with_more),
            (4, self._with_less),
            (5, self._modified),
            (2, self._with_other_null),
            (2, self._with_other_default),
            (3, self._renamed),
            (4, self._with_key),
            (2, self._with_check),
            (4, self._without_part),
            (1, self._commented),
            (1, self._idle),
            (3, self._with_several),
        ]
        if others:
            kinds.append((2, lambda it: self._with_reference(it, self._random.choice(others))))
        if not referenced:
            kinds.append((1, self._with_wider_key))
        [draw] = self._random.choices([draw for _, draw in kinds], [weight for weight, _ in kinds])
        return draw(table)

    def _name(self, letter: str) -> str:
        return f"{letter}{next(self._names)}"

    def _column(self) -> Column:
        kind = self._random.choice([*_OTHERS])
        column = Column(self._name("c"), kind, self._random.random() < 0.6)
        default = _DEFAULTS[column.base] if self._random.random() < 0.6 else ""
        return replace(
            column, default=default, comment="" if self._random.random() < 0.9 else "note"
        )

    def _any(self, columns: list[Column]) -> Column | None:
        return self._random.choice(columns) if columns else None

    def _with_more(self, table: Table) -> Change:
        column, number = self._column(), self._random.randrange(len(table.columns))
        columns = list(table.columns)
        if self._random.random() < 0.6:
            place, number = "", len(columns) - 1
        else:
            place = f" AFTER {columns[number].name}"
        columns.insert(number + 1, column)
        return _alter(table, f"ADD COLUMN {column.sql}{place}", columns=tuple(columns))

    def _with_less(self, table: Table) -> Change | None:
        unique = {name for part in table.parts if part.unique for name in part.columns}
        gone = self._any([one for one in table.free("INDEX") if one.name not in unique])
        if gone is None or len(table.columns) < 3:
            return None
        return Change(
            (f"ALTER TABLE {table.name} DROP COLUMN {gone.name}",), table.with_column(gone, None)
        )

    def _modified(self, table: Table) -> Change | None:
        column = self._any([one for one in table.columns[1:] if one.kind in _OTHERS])
        if column is None:
            return None
        new = _retyped(column, self._random.choice(_OTHERS[column.kind]))
        if column not in table.free("INDEX") or (
            column not in table.free() and new.base not in _KEYABLE
        ):
            return None
        unique = {name for part in table.parts if part.unique for name in part.columns}
        if column.name in unique and column.distinct and not new.distinct:
            return None
        return _redefined(table, column, new)

    def _with_other_null(self, table: Table) -> Change | None:
        column = self._any([one for one in table.free("INDEX") if one.default])
        if column is None:
            return None
        change = _redefined(table, column, replace(column, null=not column.null))
        name, default = column.name, column.default
        fill = f"UPDATE {table.name} SET {name} = {default} WHERE {name} IS NULL"
        return replace(change, statements=(fill, *change.statements)) if column.null else change

    def _with_other_default(self, table: Table) -> Change | None:
        fields = [one for one in table.columns[1:] if one.base in ("INT", "BIGINT", "VARCHAR")]
        column = self._any([one for one in fields if one in table.free("INDEX")])
        if column is None:
            return None
        new = replace(column, default=self._random.choice(("5", "")))
        if self._random.random() < 0.5 or not new.default:
            return _redefined(table, column, new)
        action = f"ALTER COLUMN {column.name} SET DEFAULT {new.default}"
        return Change((f"ALTER TABLE {table.name} {action}",), table.with_column(column, new))

    def _renamed(self, table: Table) -> Change | None:
        column = self._any(table.free("INDEX"))
        if column is None:
            return None
        new = replace(column, name=self._name("r"))
        if self._random.random() < 0.3 and column in table.free() and column.kind in _OTHERS:
            new = _retyped(new, self._random.choice(_OTHERS[column.kind]))
        action = f"CHANGE COLUMN {column.name} {new.sql}"
        return Change((f"ALTER TABLE {table.name} {action}",), table.with_column(column, new))

    def _with_key(self, table: Table) -> Change | None:
        # Servers may drop an index that a foreign key has left, if another one begins like it.
        left = {n for part in table.parts if part.left_by_key for n in part.columns}
        fields = [one for one in table.free("INDEX", "CONSTRAINT") if one.base in _KEYABLE]
        fields = [one for one in fields if one.name not in left]
        if not fields:
            return None
        chosen = self._random.sample(fields, min(len(fields), self._random.randint(1, 2)))
        names = tuple(column.name for column in chosen)
        unique = self._random.random() < 0.3
        if unique and not any(column.distinct for column in chosen):
            names = (*names, "id")
        part = Part(self._name("k"), "INDEX", names, unique)
        if self._random.random() < 0.5:
            return _alter(table, f"ADD {part.sql}", parts=(*table.parts, part))
        kind, listed = "UNIQUE INDEX" if unique else "INDEX", ", ".join(names)
        return Change(
            (f"CREATE {kind} {part.name} ON {table.name} ({listed})",),
            replace(table, parts=(*table.parts, part)),
        )

    def _with_check(self, table: Table) -> Change | None:
        fields = table.free("INDEX", "CONSTRAINT")
        column = self._any([one for one in fields if one.base in _NUMBERS])
        if column is None:
            return None
        part = Part(self._name(f"{self._prefix}x"), "CONSTRAINT", (column.name,))
        return _alter(table, f"ADD {part.sql}", parts=(*table.parts, part))

    def _with_reference(self, table: Table, parent: str) -> Change:
        column = Column(self._name("p"), "INT")
        acts = self._random.choice(_ACTS)
        part = Part(
            self._name(f"{self._prefix}f"), "FOREIGN KEY", (column.name,), parent=parent, acts=acts
        )
        return _alter(
            table,
            f"ADD COLUMN {column.sql}, ADD {part.sql}",
            columns=(*table.columns, column),
            parts=(*table.parts, part),
        )

    def _without_part(self, table: Table) -> Change | None:
        if not table.parts:
            return None
        gone = self._random.choice(table.parts)
        parts = tuple(part for part in table.parts if part != gone)
        if gone.parent:
            # The index that the server has made for it stays.
            index = Part(gone.name, "INDEX", gone.columns, left_by_key=True)
            parts = (*parts, index)
        if gone.dropped == "INDEX" and self._random.random() < 0.5:
            sql = f"DROP INDEX {gone.name} ON {table.name}"
            return Change((sql,), replace(table, parts=parts))
        return _alter(table, f"DROP {gone.dropped} {gone.name}", parts=parts)

    def _commented(self, table: Table) -> Change:
        comment = self._name("note ")
        return _alter(table, f"COMMENT='{comment}'", comment=comment)

    def _with_wider_key(self, table: Table) -> Change | None:
        key = table.columns[0]
        return _redefined(table, key, replace(key, kind="BIGINT")) if key.kind == "INT" else None

    def _idle(self, table: Table) -> Change:
        return _alter(table, self._random.choice(_IDLE))

    def _with_several(self, table: Table) -> Change | None:
        draws = (self._with_less, self._modified, self._renamed, self._without_part)
        first = self._random.choice(draws)(table)
        if first is None or not first.statements[0].startswith("ALTER"):
            return None
        column = self._column()
        actions, parts = f"{first.statements[0]}, ADD COLUMN {column.sql}", first.after.parts
        if column.base in _KEYABLE and self._random.random() < 0.5:
            part = Part(self._name("k"), "INDEX", (column.name,))
            actions, parts = f"{actions}, ADD {part.sql}", (*parts, part)
        columns = (*first.after.columns, column)
        return Change((actions,), replace(first.after, columns=columns, parts=parts))


def _retyped(column: Column, kind: str) -> Column:
    default = "" if kind in ("TEXT", "MEDIUMTEXT", "BLOB") else column.default
    new = replace(column, kind=kind, default=default)
    # Rows have few values of the other types.
    return replace(new, distinct=column.distinct and new.base in _DISTINCT)


def _alter(table: Table, actions: str, **parts: object) -> Change:
    after = replace(table, **parts)  # type: ignore[arg-type]
    return Change((f"ALTER TABLE {table.name} {actions}",), after)


def _redefined(table: Table, column: Column, new: Column) -> Change:
    sql = f"ALTER TABLE {table.name} MODIFY COLUMN {new.sql}"
    return Change((sql,), table.with_column(column, new))
