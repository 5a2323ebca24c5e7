"""Random histories of several tables that all shards go through, each at its own pace.

Pure: the same seed gives the same statements. `tests.workload.walks` executes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from random import Random

from tests.workload.walk_tables import Table, TableChanges

SHARDS = 3
PACES = ("statement", "file", "apart")
FILE = 5
"""Statements of one shard before it is the next one's turn, at the pace ``file``."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a history.

    Attributes:
        table: the table that it changes, by its name before.
        statements: what a shard executes.
        needs: the earlier entries that a shard executes first.
        after: the table afterwards; None if it is dropped.
    """

    table: str
    statements: tuple[str, ...]
    needs: frozenset[int]
    after: Table | None


@dataclass(frozen=True, slots=True)
class Step:
    """Statements that one shard executes. `tables` get rows after them."""

    shard: int
    statements: tuple[str, ...]
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Walk:
    """A history over all shards: its tables begin with `prefix`."""

    seed: int
    pace: str
    prefix: str
    steps: tuple[Step, ...]


def walk_of(seed: int, *, length: int = 14, renames: bool = True) -> Walk:
    """Return the walk of a seed.

    Args:
        seed: number of the walk; its tables begin with ``w<seed>_``.
        length: entries of the history.
        renames: whether tables get other names.
    """
    random, prefix = Random(seed), f"w{seed}_"
    history = _History(random, prefix, renames=renames).of(length)
    pace = random.choice(PACES)
    return Walk(seed, pace, prefix, tuple(_steps(random, history, pace)))


class _History:
    def __init__(self, random: Random, prefix: str, *, renames: bool) -> None:
        self._random = random
        self._prefix = prefix
        self._renames = renames
        self._numbers = count(1)
        self._changes = TableChanges(random, count(1), prefix)
        self._tables: dict[str, Table] = {}
        self._last: dict[str, int] = {}
        self._entries: list[Entry] = []

    def of(self, length: int) -> list[Entry]:
        self._create()
        while len(self._entries) < length:
            kind = self._random.random()
            if kind < 0.15 and len(self._tables) < 4:
                self._create()
            elif kind < 0.20:
                self._drop()
            elif kind < 0.23 and self._renames:
                self._rename()
            else:
                self._alter()
        return self._entries

    def _create(self) -> None:
        table = self._changes.created(self._name(), self._parents())
        self._add(table.name, (table.sql,), table)

    def _alter(self) -> None:
        table = self._any()
        # A shard that is created later has the parent before the child.
        parents = [name for name in self._parents() if not self._descends(name, table.name)]
        change = self._changes.altered(table, parents, referenced=self._referenced(table.name))
        if change is not None:
            self._add(table.name, change.statements, change.after)

    def _drop(self) -> None:
        table = self._any()
        if len(self._tables) > 1 and not self._referenced(table.name):
            # The target keeps the rows of dropped tables, and a later table has another name.
            self._add(table.name, (f"DROP TABLE {table.name}",), None)

    def _rename(self) -> None:
        table, name = self._any(), self._name()
        if self._referenced(table.name) or table.parents:
            return
        after = Table(name, table.columns, table.parts, table.comment)
        self._add(table.name, (f"RENAME TABLE {table.name} TO {name}",), after)

    def _add(self, name: str, statements: tuple[str, ...], after: Table | None) -> None:
        before = self._tables.pop(name, None)
        tables = (
            {name} | (before.parents if before else set()) | (after.parents if after else set())
        )
        needs = {self._last[table] for table in tables if table in self._last}
        for table in tables | ({after.name} if after else set()):
            # What concerns a parent later comes after this entry, too.
            self._last[table] = len(self._entries)
        self._entries.append(Entry(name, statements, frozenset(needs), after))
        if after is not None:
            self._tables[after.name] = after

    def _name(self) -> str:
        return f"{self._prefix}t{next(self._numbers)}"

    def _any(self) -> Table:
        return self._random.choice([*self._tables.values()])

    def _parents(self) -> list[str]:
        return [name for name, table in self._tables.items() if table.columns[0].kind == "INT"]

    def _descends(self, name: str, parent: str) -> bool:
        """Whether a table refers to another one, maybe by way of others."""
        others = self._tables[name].parents - {name}
        return parent in others or any(self._descends(other, parent) for other in others)

    def _referenced(self, name: str) -> bool:
        return any(name in table.parents for table in self._tables.values())


class _Shard:
    """The way of one shard through a history: in any order that the needs of entries allow."""

    def __init__(self, number: int, random: Random, history: list[Entry], late: int) -> None:
        self.number = number
        self.names: set[str] = set()
        self._random = random
        self._open = dict(enumerate(history))
        self._tables: dict[str, Table] = {}
        self._skip(late)

    def _skip(self, late: int) -> None:
        for number in [number for number in self._open if number < late]:
            self._apply(self._open.pop(number))
        self._created = [*self._tables.values()]

    def _apply(self, entry: Entry) -> None:
        self._tables.pop(entry.table, None)
        if entry.after is not None:
            self._tables[entry.after.name] = entry.after
            self.names.add(entry.after.name)

    def waits(self, known: set[str]) -> bool:
        """Whether it creates a table that no other shard has had yet."""
        return any(table.name not in known for table in self._created)

    @property
    def done(self) -> bool:
        return not self._open and not self._created

    def step(self, *, sorted_: bool) -> Step:
        if self._created:
            waiting = {table.name for table in self._created}
            table = next(one for one in self._created if not one.parents & waiting - {one.name})
            self._created.remove(table)
            return Step(self.number, (table.sql,), (table.name,))
        ready = [n for n, entry in self._open.items() if not entry.needs & self._open.keys()]
        number = ready[0] if sorted_ else self._random.choice(ready)
        entry = self._open.pop(number)
        self._apply(entry)
        changed = [entry.after.name] if entry.after else []
        others = [name for name in self._tables if self._random.random() < 0.3]
        return Step(self.number, entry.statements, tuple(dict.fromkeys([*changed, *others])))


def _steps(random: Random, history: list[Entry], pace: str) -> Iterator[Step]:
    late = [0] * SHARDS
    if random.random() < 0.3:
        # One shard is created with the tables that the others have later, or have by then.
        late[random.randrange(SHARDS)] = random.randint(2, len(history))
    waits = random.choice((0.0, 0.8))
    shards = [_Shard(number, random, history, late[number]) for number in range(SHARDS)]
    turn = {"statement": 1, "file": FILE, "apart": 0}[pace]
    while any(not shard.done for shard in shards):
        going = [shard for shard in shards if not shard.done]
        for shard in going if turn else [random.choice(going)]:
            if late[shard.number] and len(going) > 1:
                known = set().union(*(one.names for one in shards if one is not shard))
                if shard.waits(known) or random.random() < waits:
                    continue
            for _ in range(turn or random.randint(1, 4)):
                if not shard.done:
                    yield shard.step(sorted_=bool(turn))
