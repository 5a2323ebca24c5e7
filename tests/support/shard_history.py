"""Shards that appear, disappear, become unreadable and come back, with a shadow of their rows.

The shadow holds what the target must hold: the rows of all shards, and of shards that exist no
longer the rows that they had last. It is a copy of its own, so neither the task nor a comparison
can spoil it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.task_files import task_dict, write_task

COLUMNS: Mapping[str, str] = {
    "x": "(id INT PRIMARY KEY, v INT, s VARCHAR(20),"
    " changed DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3))",
    "z": "(id INT, v INT, s VARCHAR(20))",
}
"""`x` has a key and a column that servers change by themselves; `z` has no key."""

SCHEMAS, TABLES, ROWS = 3, 2, 8
"""Schemas of a source, shards of a table in each, and rows that a shard begins with."""

_EXTRA = 9_000_000
"""Spoiled rows of no shard begin here."""

Row = tuple[object, ...]

Event = tuple[str, str, Callable[[], None]]
"""What happens, at which source, and how."""


@dataclass(slots=True)
class Shard:
    """A shard with the rows that it has, by id.

    Attributes:
        source: id of its source.
        schema: number of its schema.
        table: `x` or `z`.
        number: of the table in its schema.
        rows: by id, `v` and `s`.
    """

    source: str
    schema: int
    table: str
    number: int
    rows: dict[int, tuple[int, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spoiled:
    """A row that somebody has changed on the target.

    Attributes:
        table: the target.
        wanted: the row as it must be; None if the target must not have it.
        there: the row as it is; None if it was deleted.
    """

    table: str
    wanted: Row | None
    there: Row | None


class ShardHistory:
    """An estate of two sources, its random history, and its shadow."""

    def __init__(
        self,
        sources: Mapping[str, DatabaseServer],
        target: DatabaseServer,
        database: str,
        mode: str,
        chance: random.Random,
    ) -> None:
        self.sources = dict(sources)
        self.target = target
        self.name = database
        self.mode = mode
        self.chance = chance
        self.shards: list[Shard] = []
        self.retired: dict[str, Counter[Row]] = {"x": Counter(), "z": Counter()}
        self.readable: set[tuple[str, int]] = set()
        self.absent: dict[str, dict[str, Counter[Row]]] = {}
        """By source that the task file does not name: the rows that it had then, by table."""
        self.owned: dict[str, set[tuple[str, int]]] = {"x": set(), "z": set()}
        """By table, the sources and schemas that have ever had a shard of it."""
        self.spoiled: list[Spoiled] = []
        self.events: list[str] = []
        self._next = 1
        self._user = f"u{database[-8:]}"

    # The estate.

    def begin(self) -> None:
        """Create the account, the targets, and a schema with all tables on each source."""
        self.target.execute(f"CREATE DATABASE {self.name}")
        for table, columns in COLUMNS.items():
            self.at_target(f"CREATE TABLE {table} {columns}")
        for source, server in self.sources.items():
            server.execute(
                f"CREATE USER {self._user}@'%' IDENTIFIED BY 'x'",
                f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {self._user}@'%'",
            )
            self._create_schema(source, 0, grant=True)

    def end(self) -> None:
        """Drop what is outside the schema of the test."""
        for server in self.sources.values():
            server.execute(f"DROP USER {self._user}@'%'")
            for number in range(SCHEMAS):
                server.execute(f"DROP DATABASE IF EXISTS {self._schema(number)}")

    def task_file(self, folder: Path) -> Path:
        """Write the task file for the sources that are present."""
        values = task_dict(
            self.name, self.present, self.target, schema=self.name, target_schema=self.name
        )
        values |= {"task-mode": "all", "shard-mode": self.mode}
        values["block-allow-list"] = {"only": {"do-dbs": [f"{self.name}_s*"]}}
        values["routes"] = {
            table: {
                "schema-pattern": f"{self.name}_s*",
                "table-pattern": f"{table}_*",
                "target-schema": self.name,
                "target-table": table,
            }
            for table in COLUMNS
        }
        for source in values["sources"]:
            source["from"] |= {"user": self._user, "password": "x"}
        for instance in values["mysql-instances"]:
            instance.pop("meta", None)
            instance["route-rules"] = list(COLUMNS)
        return write_task(folder, values)

    @property
    def present(self) -> dict[str, DatabaseServer]:
        """The sources that the task file names."""
        return {s: server for s, server in self.sources.items() if s not in self.absent}

    def at_target(self, *statements: str) -> tuple[tuple[object, ...], ...]:
        """Run statements on the target; the rows of the last."""
        return self.target.execute(*statements, database=self.name)

    def at_source(self, shard: Shard, statement: str) -> None:
        """Run a statement in the schema of a shard, in which `{}` is its table."""
        text = statement.format(f"{shard.table}_{shard.number}")
        self.sources[shard.source].execute(text, database=self._schema(shard.schema))

    # The history.

    def happen(self, *, restarting: bool = False) -> str:
        """Let a random event happen and return it; ``restarting``: the task does not run."""
        kinds = list(self._events_of_files() if restarting else self._events())
        grants = [kind for kind in kinds if kind[0].startswith("grant")]
        # Otherwise hardly any comparison could read all shards.
        if grants and self.chance.random() < 0.6:
            kinds = grants
        name, source, event = self.chance.choice(kinds)
        event()
        self.events.append(f"{name} at {source}")
        return self.events[-1]

    def _events_of_files(self) -> Iterator[Event]:
        yield "nothing", "none", lambda: None
        for source in self.sources:
            if source in self.absent:
                yield "source returns", source, partial(self._return, source)
            elif not self.absent:
                yield "source leaves", source, partial(self._leave, source)

    def _events(self) -> Iterator[Event]:
        for source in self.present:
            own = [shard for shard in self.shards if shard.source == source]
            there = sorted({shard.schema for shard in own})
            for schema in set(range(SCHEMAS)) - set(there):
                if (source, schema) in self.owned["x"] - self.readable:
                    access = partial(self._access, source, schema, grant=True)
                    yield f"grant s{schema}, which is gone", source, access
                for grant in (True, False):
                    made = partial(self._create_schema, source, schema, grant=grant)
                    yield f"schema s{schema} with{'' if grant else 'out'} grant", source, made
            for schema in there:
                if len(there) > 1:
                    yield f"drop schema s{schema}", source, partial(self._drop, source, schema)
                for grant in (True, False):
                    if ((source, schema) in self.readable) != grant:
                        name = "grant" if grant else "revoke"
                        access = partial(self._access, source, schema, grant=grant)
                        yield f"{name} s{schema}", source, access
                for table in COLUMNS:
                    numbers = [s.number for s in own if (s.schema, s.table) == (schema, table)]
                    free = set(range(1, TABLES + 1)) - set(numbers)
                    for number in free:
                        made = partial(self._create, Shard(source, schema, table, number))
                        yield f"create s{schema}.{table}_{number}", source, made
                    if len(numbers) > 1:
                        shard = self.chance.choice(
                            [s for s in own if (s.schema, s.table) == (schema, table)]
                        )
                        text = f"drop s{schema}.{table}_{shard.number}"
                        yield text, source, partial(self._drop_table, shard)

    def _schema(self, number: int) -> str:
        return f"{self.name}_s{number}"

    def _create_schema(self, source: str, schema: int, *, grant: bool) -> None:
        self.sources[source].execute(f"CREATE DATABASE {self._schema(schema)}")
        if grant and (source, schema) not in self.readable:
            self._access(source, schema, grant=True)
        for table in COLUMNS:
            self._create(Shard(source, schema, table, 1))

    def _access(self, source: str, schema: int, *, grant: bool) -> None:
        literal = self._schema(schema).replace("_", r"\_")
        what = f"SELECT, LOCK TABLES ON `{literal}`.*"
        words = f"GRANT {what} TO" if grant else f"REVOKE {what} FROM"
        self.sources[source].execute(f"{words} {self._user}@'%'")
        if grant:
            self.readable.add((source, schema))
        else:
            self.readable.discard((source, schema))

    def _create(self, shard: Shard) -> None:
        self.at_source(shard, f"CREATE TABLE {{}} {COLUMNS[shard.table]}")
        self.shards.append(shard)
        self.owned[shard.table].add((shard.source, shard.schema))
        self.insert(shard, ROWS)

    def _drop_table(self, shard: Shard) -> None:
        self.at_source(shard, "DROP TABLE {}")
        self._retire(shard)

    def _drop(self, source: str, schema: int) -> None:
        self.sources[source].execute(f"DROP DATABASE {self._schema(schema)}")
        for shard in [s for s in self.shards if (s.source, s.schema) == (source, schema)]:
            self._retire(shard)

    def _retire(self, shard: Shard) -> None:
        self.shards.remove(shard)
        self.retired[shard.table] += rows_of(shard)

    def _leave(self, source: str) -> None:
        self.absent[source] = {table: self._live(table, [source]) for table in COLUMNS}

    def _return(self, source: str) -> None:
        del self.absent[source]

    # Rows.

    def insert(self, shard: Shard, rows: int) -> None:
        """Insert new rows."""
        made = {self._next + n: (self.chance.randrange(1000), f"é {n}") for n in range(rows)}
        self._next += rows
        names = "id, v, s, changed" if shard.table == "x" else "id, v, s"
        values = ", ".join(literals(row_of(shard.table, key, made[key])) for key in made)
        self.at_source(shard, f"INSERT INTO {{}} ({names}) VALUES {values}")
        shard.rows |= made

    def write(self, rounds: int) -> None:
        """Change rows of random shards, except the spoiled rows."""
        spoiled = {row[0] for s in self.spoiled if (row := s.wanted) is not None}
        for _ in range(rounds):
            shard = self.chance.choice(self.shards)
            keys = sorted(shard.rows.keys() - spoiled)
            if not keys or self.chance.random() < 0.4:
                self.insert(shard, self.chance.randrange(1, 4))
                continue
            key = self.chance.choice(keys)
            if self.chance.random() < 0.3:
                self.at_source(shard, f"DELETE FROM {{}} WHERE id = {key}")
                del shard.rows[key]
                continue
            shard.rows[key] = (self.chance.randrange(1000), f"ü {key}")
            _, v, s, *rest = row_of(shard.table, key, shard.rows[key])
            changed = f", changed = '{rest[0]}'" if rest else ""
            self.at_source(shard, f"UPDATE {{}} SET v = {v}, s = '{s}'{changed} WHERE id = {key}")

    def _live(self, table: str, sources: Collection[str]) -> Counter[Row]:
        found: Counter[Row] = Counter()
        for shard in self.shards:
            if shard.table == table and shard.source in sources:
                found += rows_of(shard)
        return found

    def wanted(self, table: str) -> Counter[Row]:
        """The rows that a target must have, if nobody spoils it."""
        found = self._live(table, self.present.keys()) + self.retired[table]
        for rows in self.absent.values():
            found += rows[table]
        return found

    def on_target(self, table: str) -> Counter[Row]:
        """The rows that a target has."""
        more = ", CAST(changed AS CHAR)" if table == "x" else ""
        return Counter(self.at_target(f"SELECT id, v, s{more} FROM {table}"))

    # Spoiled rows.

    def spoil(self) -> None:
        """Change, delete and add rows of both targets."""
        for table in COLUMNS:
            live = sorted(self._live(table, self.present.keys()))
            for row in self.chance.sample(live, 2):
                change = table == "x" and self.chance.random() < 0.5
                there = (row[0], int(str(row[1])) + 5000, *row[2:]) if change else None
                self._put(table, row, there)
                self.spoiled.append(Spoiled(table, row, there))
            if self.chance.random() < 0.5:
                extra = row_of(table, _EXTRA + self.chance.randrange(9999), (1, "extra"))
                self._put(table, None, extra)
                self.spoiled.append(Spoiled(table, None, extra))

    def unspoil(self) -> None:
        """Make right what a comparison has not repaired."""
        for spoiled in self.spoiled:
            if self.is_left(spoiled):
                self._put(spoiled.table, spoiled.there, spoiled.wanted)
        self.spoiled.clear()

    def is_left(self, spoiled: Spoiled) -> bool:
        """Whether a spoiled row is still as it was made."""
        rows = self.on_target(spoiled.table)
        if spoiled.there is not None:
            return bool(rows[spoiled.there])
        return not rows[spoiled.wanted or ()]

    def _put(self, table: str, before: Row | None, row: Row | None) -> None:
        if before is not None:
            self.at_target(f"DELETE FROM {table} WHERE id = {before[0]}")
        if row is not None:
            self.at_target(f"INSERT INTO {table} VALUES {literals(row)}")

    def damage(self) -> list[str]:
        """The good rows that the target does not have, and the rows that nobody has made."""
        found = []
        for table in COLUMNS:
            there, wanted = self.on_target(table), self.wanted(table)
            spoiled = [s for s in self.spoiled if s.table == table and self.is_left(s)]
            wanted -= Counter(s.wanted for s in spoiled if s.wanted is not None)
            wanted += Counter(s.there for s in spoiled if s.there is not None)
            found += [f"{table}: {row} is gone" for row in (wanted - there)]
            found += [f"{table}: {row} appeared" for row in (there - wanted)]
        return found

    def all_readable(self, table: str) -> bool:
        """Whether the account reads all shards of a target.

        Without a grant it can't know whether a schema still exists.
        """
        owned = self.owned[table]
        return all(s[0] in self.absent or s in self.readable for s in owned)

    def is_retired(self, table: str) -> bool:
        """Whether the target has rows of shards that do not exist any more."""
        return bool(self.retired[table]) or any(rows[table] for rows in self.absent.values())


def row_of(table: str, key: int, values: tuple[int, str]) -> Row:
    """A row as the target shows it."""
    if table == "z":
        return (key, *values)
    changed = datetime(2024, 1, 1) + timedelta(seconds=1, milliseconds=values[0])
    return (key, *values, changed.isoformat(" ", "milliseconds"))


def rows_of(shard: Shard) -> Counter[Row]:
    """The rows of a shard as the target shows them."""
    return Counter(row_of(shard.table, key, values) for key, values in shard.rows.items())


def literals(row: Row) -> str:
    """A row as SQL."""
    return f"({', '.join(repr(value) for value in row)})"
