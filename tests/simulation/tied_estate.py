"""Random shards of two targets that foreign keys tie: what keys connect has one sequence of rows.

All of a family is one target of the model, so its items are those of both.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from replicator.watermark import Place
from tests.simulation.estate import (
    BEGINNING,
    Alter,
    Binlog,
    Create,
    Drop,
    Estate,
    Event,
    Rename,
    Row,
)

FAMILY = "F"
TIED = ("P", "C")


@dataclass(slots=True)
class _Table:
    name: str
    tied: str
    texts: tuple[str, ...] = ()
    since: Place = BEGINNING


@dataclass(slots=True)
class _Shard:
    """Tables that keys connect. ``todo``: their statements, with the target of each; ``unborn``:
    the targets of those that are yet to be created."""

    number: int
    source: str
    todo: list[tuple[str, str]]
    tables: dict[str, _Table]
    rows: int = 0
    spare: int = 3
    mortal: bool = True
    unborn: tuple[str, ...] = ()

    @property
    def dying(self) -> bool:
        return len(self.tables) + len(self.unborn) < len(TIED)


class _Maker:
    def __init__(self, seed: int) -> None:
        self.names = 0
        self.shards: list[_Shard] = []
        self.random = choose = random.Random(seed)
        self.orderly = choose.random() < 0.5
        self.growing = seed % 2 == 1
        self.binlogs = {name: Binlog() for name in "ABC"[: choose.choice((1, 2, 2, 3))]}
        self.plan = plan = [
            (choose.choice(TIED), choose.choice("ab")) for _ in range(choose.randint(1, 4))
        ]
        for source in self.binlogs:
            for _ in range(choose.choice((0, 1, 2, 2))):
                todo = list(plan) if self.orderly else self.otherwise(plan)
                tables = {tied: _Table(self.name(tied), tied) for tied in TIED}
                self.shards.append(_Shard(self.names, source, todo, tables))
        if self.shards:
            self.shards[0].mortal = False

    def otherwise(self, plan: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """The same for each target, but the two in another order."""
        left = {tied: [item for item in plan if item[0] == tied] for tied in TIED}
        return [
            left[self.random.choice([tied for tied in TIED if left[tied]])].pop(0) for _ in plan
        ]

    def name(self, tied: str) -> str:
        self.names += 1
        return f"{tied.lower()}{self.names}"

    def make(self) -> Estate:
        initial = {
            (source, FAMILY): tuple(
                table.name
                for shard in self.shards
                if shard.source == source
                for table in shard.tables.values()
            )
            for source in self.binlogs
        }
        tied = {
            table.name: (table.tied, str(shard.number))
            for shard in self.shards
            for table in shard.tables.values()
        }
        alive = list(self.shards)
        while alive:
            shard = self.random.choice(alive)
            self.live(shard, alive)
            going = shard.dying or shard.unborn or shard.todo or shard.spare
            if not ((shard.tables or shard.unborn) and going):
                alive.remove(shard)
            if self.growing and self.random.random() < 0.06 and len(self.shards) < 7:
                alive.append(self.born(shard))
        return Estate((FAMILY,), self.binlogs, initial, self.orderly, tied=tied)

    def born(self, like: _Shard) -> _Shard:
        """A shard that has had as many statements as another one, or any number of them."""
        done = len(self.plan) - len(like.todo)
        if not self.orderly and self.random.random() < 0.3:
            done = self.random.randint(0, len(self.plan))
        self.names += 1
        shard = _Shard(self.names, like.source, list(self.plan[done:]), {})
        shard.unborn = tuple(self.random.sample(TIED, len(TIED)))
        self.shards.append(shard)
        return shard

    def create(self, shard: _Shard, log: list[tuple[Event, ...]]) -> None:
        tied, *unborn = shard.unborn
        shard.unborn = tuple(unborn)
        done = self.plan[: len(self.plan) - len(shard.todo)]
        texts = tuple(f"{of}: {text}" for of, text in done if of == tied)
        table = _Table(self.name(tied), tied, texts, Place(len(log), 0))
        shard.tables[tied] = table
        log.append((Create(table.name, FAMILY, texts, tied, str(shard.number)),))

    def live(self, shard: _Shard, alive: list[_Shard]) -> None:
        chance = self.random.random()
        log = self.binlogs[shard.source].transactions
        if shard.unborn:
            if chance < 0.6 or not shard.tables:
                self.create(shard, log)
            elif shard.spare:
                shard.spare -= 1
                self.write(shard, alive)
        elif shard.dying or (chance > 0.97 and shard.mortal):
            # All of it goes, one table after the other.
            shard.todo = []
            table = shard.tables.pop(self.random.choice(list(shard.tables)))
            log.append((Drop(table.name, FAMILY),))
        elif chance < 0.5 and shard.spare:
            shard.spare -= 1
            self.write(shard, alive)
        elif chance < 0.9 and shard.todo:
            tied, text = shard.todo.pop(0)
            table = shard.tables[tied]
            table.since = Place(len(log), 0)
            table.texts = (*table.texts, f"{tied}: {text}")
            log.append((Alter(table.name, FAMILY, f"{tied}: {text}"),))
            shard.spare = max(shard.spare, self.random.randint(0, 3))
        elif chance < 0.97:
            table = shard.tables[self.random.choice(list(shard.tables))]
            new = self.name(table.tied)
            log.append((Rename(table.name, FAMILY, new),))
            table.name = new

    def write(self, shard: _Shard, alive: list[_Shard]) -> None:
        others = [one for one in alive if one.source == shard.source and one.tables]
        rows: list[Event] = []
        for _ in range(self.random.randint(1, 4)):
            one = shard if self.random.random() < 0.7 else self.random.choice(others)
            table = one.tables[self.random.choice(list(one.tables))]
            # All even: the rows of tied targets have one bucket, and so one order.
            one.rows += 2
            rows.append(
                Row(table.name, FAMILY, one.number, one.rows, table.since, table.texts, table.tied)
            )
        self.binlogs[shard.source].transactions.append(tuple(rows))


def make_tied_estate(seed: int) -> Estate:
    """The tied estate of a seed: the same for ever."""
    return _Maker(seed).make()
