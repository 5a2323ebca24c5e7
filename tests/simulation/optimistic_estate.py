"""Random shards of one target that change their structures in their own ways."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from replicator.schema.effects.touched_parts import Touched, column_part, name_of_column
from replicator.schema.structure.structure import Column, Table, UniqueKey
from replicator.sharding.optimistic.fills import fill_of
from replicator.watermark import Place

SOURCES = ("A", "B", "C")
TYPES = ("smallint", "int", "bigint", "varchar(9)")
DEFAULTS = ("", " DEFAULT 1", " DEFAULT 2")
PLANS = (*[()] * 7, ("unique", "unique"), ("add", "drop", "add"), ("add", "default", "widen"))
"""What shards do: mostly at random, else what it takes to find certain faults."""
Values = dict[str, str]
Definition = tuple[str, str, str]
"""A column: its name, its type, its default as it is written."""


@lru_cache(maxsize=4096)
def table(columns: tuple[Definition, ...], unique: bool = False) -> Table:
    """A table with a key ``id`` and these columns; ``unique``: and a unique key of ``b``."""
    lines = ["  `id` int NOT NULL", *(f"  `{n}` {kind}{default}" for n, kind, default in columns)]
    keys = [UniqueKey("PRIMARY", ("id",))]
    lines.append("  PRIMARY KEY (`id`)")
    if unique:
        keys.append(UniqueKey("u", ("b",), nullable=True))
        lines.append("  UNIQUE KEY `u` (`b`)")
    found = tuple(
        Column(
            n,
            kind,
            *(("ascii", "ascii_bin") if "char" in kind else ("", "")),
            nullable="NOT NULL" not in default,
        )
        for n, kind, default in columns
    )
    text = "CREATE TABLE `t` (\n" + ",\n".join(lines) + "\n)"
    return Table("d", "t", (Column("id", "int", nullable=False), *found), tuple(keys), text)


@dataclass(frozen=True, slots=True)
class Write:
    """A row event: a new row with these values, or other values of the member's columns."""

    member: str
    key: str
    values: tuple[tuple[str, str], ...]
    number: int
    insert: bool


@dataclass(frozen=True, slots=True)
class Ddl:
    """A statement of a member; ``before`` None: it creates it, ``after`` None: it drops it."""

    member: str
    text: str
    before: Table | None
    after: Table | None
    touched: tuple[tuple[str, frozenset[str]], ...] = ()
    renamed: tuple[str, str] | None = None

    @property
    def touches(self) -> Touched:
        """The parts that it touches."""
        return touched_by(dict(self.touched))


Event = Write | Ddl


@dataclass(slots=True)
class Shard:
    """A member as its source has it, while the estate is made."""

    name: str
    source: str
    columns: tuple[Definition, ...]
    unique: bool = False
    rows: dict[str, Values] = field(default_factory=dict)
    writes: int = 0
    former: list[str] = field(default_factory=list)
    alive: bool = True

    @property
    def table(self) -> Table:
        return table(self.columns, self.unique)


class OptimisticEstate:
    """Random shards of one target: the logs of a few sources, and what the rows come to.

    ``converging``: all shards come to the same structure in the end, in their own order.
    """

    def __init__(self, seed: int) -> None:
        self.random = choose = random.Random(seed)
        self.sources = SOURCES[: choose.choice((1, 2, 2, 3))]
        self.logs: dict[str, list[tuple[Event, ...]]] = {s: [] for s in self.sources}
        first = (("b", "smallint", ""),)
        self.shards = [
            Shard(f"{source}{n}", source, first)
            for source in self.sources
            for n in range(choose.choice((1, 1, 2)))
        ]
        self.initial = {shard.name: shard.table for shard in self.shards}
        self.converging = choose.random() < 0.5
        kinds = ("add", "add", "drop", "widen", "default", "unique", "name")
        plan = choose.choice(PLANS)
        self.planned = bool(plan)
        self.converging |= self.planned
        plan = plan or tuple(choose.choice(kinds) for _ in range(choose.randint(1, 4)))
        todo = {shard.name: [(n, kind) for n, kind in enumerate(plan)] for shard in self.shards}
        self.drawn = {n: choose.randrange(1 << 30) for n in range(len(plan))}
        while any(todo.values()) or choose.random() < 0.6:
            shard = choose.choice(self.shards)
            if self.planned and choose.random() < 0.7:
                # One shard after the other.
                shard = next((s for s in self.shards if todo[s.name]), shard)
            if todo[shard.name] and choose.random() < 0.5:
                number, kind = todo[shard.name].pop(0)
                drawn = self.drawn[number] if self.converging else choose.randrange(1 << 30)
                self.change(shard, kind, random.Random(drawn))
            else:
                self.write(shard)

    def log(self, shard: Shard, *events: Event) -> None:
        self.logs[shard.source].append(events)

    def write(self, shard: Shard) -> None:
        events: list[Event] = []
        for _ in range(self.random.randint(1, 2)):
            insert = not shard.rows or self.random.random() < 0.6
            shard.writes += 1
            key = f"{shard.name}-{shard.writes}" if insert else self.random.choice([*shard.rows])
            values = {name: self.value(shard, name, kind) for name, kind, _ in shard.columns}
            shard.rows[key] = values
            given = tuple(sorted(values.items()))
            events.append(Write(shard.name, key, given, shard.writes, insert))
        self.log(shard, *events)

    def value(self, shard: Shard, name: str, kind: str) -> str:
        if name == "b" and shard.unique:
            return f"{shard.name}:{shard.writes}"
        return f"{shard.name}:{self.random.randint(1, 2)}"

    def change(self, shard: Shard, kind: str, choose: random.Random) -> None:
        before, names = shard.table, [name for name, *_ in shard.columns]
        free = [name for name in ("b", "c", "d", "e") if name not in names]
        touched: dict[str, set[str]] = {}
        renamed = None
        if kind == "add" and free:
            again = [name for name in shard.former if name in free]
            name = again[-1] if again and choose.random() < 0.7 else choose.choice(free)
            new = (name, choose.choice(TYPES[:3]), choose.choice(DEFAULTS))
            if not self.converging and choose.random() < 0.1:
                new = (new[0], TYPES[3], "")
            shard.columns = (*shard.columns, new)
            for values in shard.rows.values():
                values[new[0]] = value_of(shard.table, new[0])
            touched["added"] = {new[0]}
            text = f"add {new}"
        elif kind == "drop" and [name for name in names if name != "b"]:
            gone = choose.choice([name for name in names if name != "b"])
            shard.columns = tuple(c for c in shard.columns if c[0] != gone)
            shard.former.append(gone)
            for values in shard.rows.values():
                del values[gone]
            touched["dropped"] = {gone}
            text = f"drop {gone}"
        elif kind == "widen" and names:
            name = names[-1] if self.planned else choose.choice(names)
            shard.columns = tuple(
                (n, TYPES[min(2, TYPES.index(t) + 1)] if n == name and t in TYPES[:3] else t, d)
                for n, t, d in shard.columns
            )
            touched["converted"] = {name}
            text = f"widen {[c for c in shard.columns if c[0] == name]}"
        elif kind == "default" and names:
            name = names[-1] if self.planned else choose.choice(names)
            value = choose.choice(DEFAULTS[1:])
            shard.columns = tuple((n, t, value if n == name else d) for n, t, d in shard.columns)
            text = f"default {name}{value}"
        elif kind == "unique" and "b" in names:
            self.key(shard)
            text = f"unique {shard.unique}"
        elif kind == "name" and free and [name for name in names if name != "b"]:
            old = choose.choice([name for name in names if name != "b"])
            renamed = old, free[0]
            shard.columns = tuple((free[0] if n == old else n, t, d) for n, t, d in shard.columns)
            for values in shard.rows.values():
                values[free[0]] = values.pop(old)
            touched |= {"renamed": {old}, "named": {free[0]}, "added": {free[0]}}
            text = f"name {renamed}"
        else:
            return
        parts = tuple((n, frozenset(map(column_part, names))) for n, names in touched.items())
        self.log(shard, Ddl(shard.name, text, before, shard.table, parts, renamed))

    def key(self, shard: Shard) -> None:
        """A unique key comes or goes; it comes where no values are twice."""
        if not shard.unique:
            for key, values in sorted(shard.rows.items()):
                shard.writes += 1
                values["b"] = f"{shard.name}:{shard.writes}"
                changed = tuple(sorted(values.items()))
                self.log(shard, Write(shard.name, key, changed, shard.writes, False))
        shard.unique = not shard.unique

    def events(self, source: str) -> list[tuple[Place, Event]]:
        return [
            (Place(at, number if isinstance(event, Write) else 0), event)
            for at, events in enumerate(self.logs[source])
            for number, event in enumerate(events, 1)
        ]


def value_of(structure: Table, name: str) -> str:
    """What rows that are there get in a column that is added."""
    column = structure.column(name)
    assert column is not None
    return fill_of(structure, column).sql


def touched_by(parts: Mapping[str, Iterable[str]]) -> Touched:
    """The parts that a statement touches; it renames one column at most."""
    found = Touched()
    for name, some in parts.items():
        getattr(found, name).update(some)
    names = ((name_of_column(part) for part in each) for each in (found.renamed, found.named))
    found.pairs.update(zip(*names, strict=True))
    return found
