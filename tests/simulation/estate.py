"""Random shards: the binlogs of a few sources, and what is true about each row in them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from replicator.watermark import Place

BEGINNING = Place(0, -1)
UNSEEN = "c"
"""A statement that leaves a structure as it was, such as one that adds an index."""


def shape(texts: tuple[str, ...]) -> tuple[str, ...]:
    """What statements have made of a table, as far as its structure shows it."""
    return tuple(text for text in texts if text != UNSEEN)


@dataclass(frozen=True, slots=True)
class Row:
    """A row event. ``since``: the statement that gave its table its structure; ``texts``: all
    items of its shard before it; ``number``: its number among the rows of its shard."""

    member: str
    target: str
    shard: int
    number: int
    since: Place
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Alter:
    member: str
    target: str
    text: str


@dataclass(frozen=True, slots=True)
class Create:
    member: str
    target: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Drop:
    member: str
    target: str


@dataclass(frozen=True, slots=True)
class Rename:
    member: str
    target: str
    new: str


Event = Row | Alter | Create | Drop | Rename


@dataclass(slots=True)
class Binlog:
    """Transactions: several rows, or one statement. The key of a position is the index here."""

    transactions: list[tuple[Event, ...]] = field(default_factory=list)

    def events(self) -> list[tuple[Place, Event]]:
        return [
            (Place(key, ordinal if isinstance(event, Row) else 0), event)
            for key, events in enumerate(self.transactions)
            for ordinal, event in enumerate(events, 1)
        ]


@dataclass(slots=True)
class Estate:
    """``initial``: by (source, target), the members there at the beginning.

    ``orderly``: all shards of a target follow one sequence, and no lock is ever forced: then
    everything must resolve by itself, and a row's items are those of the target. ``reckless``:
    tables are created with structures that no other shard may come to have.
    """

    targets: tuple[str, ...]
    binlogs: dict[str, Binlog]
    initial: dict[tuple[str, str], tuple[str, ...]]
    orderly: bool
    reckless: bool = False

    def rows(self) -> list[Row]:
        return [
            event
            for binlog in self.binlogs.values()
            for _, event in binlog.events()
            if isinstance(event, Row)
        ]


@dataclass(slots=True)
class _Shard:
    number: int
    name: str
    source: str
    target: str
    todo: list[str]
    texts: tuple[str, ...] = ()
    since: Place = BEGINNING
    rows: int = 0
    spare: int = 0
    mortal: bool = True


class _Maker:
    """Plays the life of all shards in one random order, writing it to their binlogs."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        choose = self.random
        self.targets = ("T", "U")[: choose.choice((1, 1, 2))]
        self.sources = ("A", "B", "C")[: choose.choice((1, 2, 2, 3))]
        self.orderly = choose.random() < 0.6
        self.reckless = choose.random() < 0.2
        self.binlogs = {source: Binlog() for source in self.sources}
        self.names = 0
        self.shards: list[_Shard] = []
        self.plan = {
            target: [choose.choice("abc") for _ in range(choose.randint(1, 4))]
            for target in self.targets
        }
        for target in self.targets:
            for source in self.sources:
                for _ in range(choose.choice((0, 1, 2, 2, 3))):
                    self.born(source, target, ())
            own = [shard for shard in self.shards if shard.target == target]
            if own:
                choose.choice(own).mortal = False
        self.initial = {
            (source, target): tuple(
                s.name for s in self.shards if (s.source, s.target) == (source, target)
            )
            for source in self.sources
            for target in self.targets
        }

    def born(self, source: str, target: str, texts: tuple[str, ...]) -> _Shard:
        todo = self.plan[target][len(texts) :]
        if not self.orderly and self.random.random() < 0.5:
            todo = [t if self.random.random() < 0.6 else self.random.choice("abcd") for t in todo]
            todo = todo[: self.random.randint(0, len(todo))]
        self.names += 1
        shard = _Shard(
            self.names, f"{target.lower()}{self.names}", source, target, list(todo), texts
        )
        shard.spare = self.random.randint(1, 4)
        self.shards.append(shard)
        return shard

    def make(self) -> Estate:
        alive = list(self.shards)
        while alive:
            shard = self.random.choice(alive)
            self.live(shard, alive)
            if not shard.todo and not shard.spare and shard in alive:
                alive.remove(shard)
        return Estate(self.targets, self.binlogs, self.initial, self.orderly, self.reckless)

    def live(self, shard: _Shard, alive: list[_Shard]) -> None:
        chance = self.random.random()
        log = self.binlogs[shard.source].transactions
        if chance < 0.45 and shard.spare:
            shard.spare -= 1
            self.write(shard, alive)
        elif chance < 0.85 and shard.todo:
            text = shard.todo.pop(0)
            shard.since = Place(len(log), 0)
            shard.texts = (*shard.texts, text)
            log.append((Alter(shard.name, shard.target, text),))
            shard.spare = max(shard.spare, self.random.randint(0, 3))
        elif chance < 0.90:
            self.names += 1
            new = f"{shard.target.lower()}{self.names}"
            log.append((Rename(shard.name, shard.target, new),))
            shard.name = new
        elif chance < 0.94 and self.names < 12:
            plan = tuple(self.plan[shard.target])
            texts = plan[: self.random.randint(0, len(plan))]
            if not self.orderly and not self.reckless and self.random.random() < 0.7:
                texts = shard.texts
            # What its structure does not show it has not had: nobody could know, and wait for it.
            while texts and texts[-1] == UNSEEN:
                texts = texts[:-1]
            twin = self.born(shard.source, shard.target, texts)
            twin.since = Place(len(log), 0)
            log.append((Create(twin.name, twin.target, twin.texts),))
            alive.append(twin)
        elif chance < 0.98 and shard.mortal:
            log.append((Drop(shard.name, shard.target),))
            alive.remove(shard)

    def write(self, shard: _Shard, alive: list[_Shard]) -> None:
        """A transaction of a few rows, of several shards of the source."""
        others = [s for s in alive if s.source == shard.source]
        rows: list[Event] = []
        for _ in range(self.random.randint(1, 3)):
            one = shard if self.random.random() < 0.6 else self.random.choice(others)
            one.rows += 1
            rows.append(Row(one.name, one.target, one.number, one.rows, one.since, one.texts))
        self.binlogs[shard.source].transactions.append(tuple(rows))


def make_estate(seed: int) -> Estate:
    """The estate of a seed: the same for ever."""
    return _Maker(seed).make()
