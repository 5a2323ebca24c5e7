"""The rule for keys that two shards may have, on a model: two sources, a target, any order.

Rows move between the sources in two transactions, inserted first, while they are copied; some leave
their old shard only when everything has been caught up with.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum

import pytest

KEYS = range(6)
RUNS = 400


class Outcome(StrEnum):
    EQUAL = "equal"
    PAUSED = "paused"
    DIFFERS = "differs"


class DuplicateError(Exception):
    """Strict mode met a row that is there: the task would pause."""


@dataclass
class Source:
    rows: dict[int, int] = field(default_factory=dict)
    log: list[tuple[int, int | None, bool]] = field(default_factory=list)
    applied: int = 0
    safe_until: int = 0

    def write(self, key: int, value: int | None) -> None:
        self.log.append((key, value, key not in self.rows))
        if value is None:
            del self.rows[key]
        else:
            self.rows[key] = value


class World:
    """The program does what is in `copy`, `apply`, `survey`, `correct`; the rest is random."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.sources = [Source(), Source()]
        self.target: dict[int, int] = {}
        self.noted: dict[int, int] = {}
        self.noting = True
        self.notes_arrivals = self.counts = self.waits = self.compares = self.busy = True
        self.moving: list[tuple[Source, int]] = []
        self.values = 0
        for key in KEYS:
            self.chance.choice(self.sources).write(key, key)

    def write(self, *, begins: bool = True, ends: bool = True) -> None:
        """A change, or a step of a move: one that ``begins`` it, or that ``ends`` it."""
        self.values += 1
        if ends and self.moving and self.chance.random() < 0.5:
            old, key = self.moving.pop(self.chance.randrange(len(self.moving)))
            old.write(key, None)
            return
        key = self.chance.choice(KEYS)
        holders = [source for source in self.sources if key in source.rows]
        if len(holders) != 1:
            return
        (old,) = holders
        (new,) = (source for source in self.sources if source is not old)
        if not begins or self.chance.random() < 0.3:
            old.write(key, self.values)
        else:
            new.write(key, self.values)
            self.moving.append((old, key))

    def end_moves(self) -> None:
        while self.moving:
            old, key = self.moving.pop()
            old.write(key, None)

    def change_late(self) -> None:
        """A row that is on its way is changed, in its old shard or in its new one; or goes back."""
        self.values += 1
        if not self.moving:
            return
        number = self.chance.randrange(len(self.moving))
        old, key = self.moving[number]
        (new,) = (source for source in self.sources if source is not old)
        if self.chance.random() < 0.3:
            new.write(key, None)
            del self.moving[number]
        else:
            self.chance.choice(self.sources).write(key, self.values)

    def note(self, key: int) -> None:
        if self.noting:
            self.noted[key] = self.noted.get(key, 0) + 1

    def copy(self, *, ends: bool) -> None:
        for source in self.sources:
            source.applied = len(source.log)
        chunks = [(source, key) for source in self.sources for key in KEYS]
        self.chance.shuffle(chunks)
        for source, key in chunks:
            self.write(ends=ends)
            if key in source.rows:
                if key in self.target and self.notes_arrivals:
                    self.note(key)
                self.target[key] = source.rows[key]
        for source in self.sources:
            self.write(ends=ends)
            source.safe_until = len(source.log)

    def apply(self) -> bool:
        """The next event of any source; False where all are applied."""
        behind = [source for source in self.sources if source.applied < len(source.log)]
        if not behind:
            return False
        source = self.chance.choice(behind)
        key, value, inserted = source.log[source.applied]
        safe = source.applied < source.safe_until
        source.applied += 1
        if value is not None:
            if inserted and key in self.target:
                if not safe:
                    raise DuplicateError
                if self.notes_arrivals:
                    self.note(key)
            self.target[key] = value
        else:
            self.target.pop(key, None)
            self.note(key)
        return True

    def survey(self) -> None:
        """While others write and things are applied: forget what one source has, or none."""
        noted = dict(self.noted)
        holders: dict[int, int] = dict.fromkeys(noted, 0)
        places = []
        for source in self.sources:
            for key in noted:
                holders[key] += key in source.rows
            places.append(len(source.log))
            for _ in range(self.chance.randrange(3)):
                if self.chance.random() < 0.5:
                    self.write(begins=False)
                else:
                    self.apply()
        there = set(self.target)
        while any(s.applied < p for s, p in zip(self.sources, places, strict=True)):
            self.apply()
        for key, times in noted.items():
            settled = holders[key] == 0 or (holders[key] == 1 and key in there)
            if settled and (self.noted.get(key) == times or not self.counts):
                self.noted.pop(key, None)

    def go_on(self) -> None:
        """Others write, and things are applied, for a while."""
        for _ in range(self.chance.randrange(4) if self.busy else 0):
            choice = self.chance.random()
            if choice < 0.3:
                self.write(begins=False)
            elif choice < 0.5:
                self.insert_again()
            else:
                self.apply()

    def insert_again(self) -> None:
        """A row is deleted and inserted."""
        self.values += 1
        source = self.chance.choice(self.sources)
        if source.rows:
            key = self.chance.choice(sorted(source.rows))
            source.write(key, None)
            source.write(key, self.values)

    def correct(self) -> None:
        """While others write and things are applied: put back what is missing for certain."""
        self.go_on()
        missing = [key for key in self.noted if key not in self.target]
        seen = [{k: s.rows[k] for k in missing if k in s.rows} for s in self.sources]
        places = [len(source.log) for source in self.sources]
        self.go_on()
        if self.waits:
            while any(s.applied < p for s, p in zip(self.sources, places, strict=True)):
                self.apply()
                self.go_on()
        for key in missing:
            having = [n for n, source in enumerate(self.sources) if key in source.rows]
            if len(having) == 1 and key not in self.target:
                value = self.sources[having[0]].rows[key]
                if value == seen[having[0]].get(key) or not self.compares:
                    self.target[key] = value

    @property
    def settled(self) -> bool:
        """Whether no key is noted, and no source is in safe mode: noting ends."""
        return not self.noted and all(s.applied >= s.safe_until for s in self.sources)


def run(
    seed: int,
    *,
    looks_up: bool = True,
    notes_arrivals: bool = True,
    counts: bool = True,
    waits: bool = True,
    compares: bool = True,
    busy: bool = True,
    late: bool = False,
) -> Outcome:
    """How it ends; without a part of the rule where that is False.

    ``late``: moves that have begun end only when all is caught up with, and noting may have ended.
    """
    world = World(seed)
    world.notes_arrivals, world.counts = notes_arrivals, counts
    world.waits, world.compares, world.busy = waits, compares, busy
    try:
        world.copy(ends=not late)
        for _ in range(10):
            if not late and world.chance.random() < 0.5:
                world.write(begins=False)
            world.apply()
            if world.chance.random() < 0.2:
                world.survey()
        if not late:
            world.end_moves()
        for _ in range(20):
            while world.apply():
                pass
            if not looks_up:
                break
            world.survey()
            if world.chance.random() < 0.5:
                while world.apply():
                    pass
            if all(s.applied >= s.safe_until for s in world.sources):
                world.correct()
            if world.settled:
                world.noting = False
            if world.chance.random() < 0.3:
                world.change_late()
            if world.chance.random() < 0.1:
                world.end_moves()
        world.end_moves()
        while world.apply():
            pass
        if world.noting and looks_up:
            world.correct()
        while world.apply():
            pass
    except DuplicateError:
        return Outcome.PAUSED
    wanted = {key: value for source in world.sources for key, value in source.rows.items()}
    return Outcome.EQUAL if world.target == wanted else Outcome.DIFFERS


def outcomes(**rules: bool) -> Counter[Outcome]:
    return Counter(run(seed, **rules) for seed in range(RUNS))


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_no_row_is_lost_in_any_order(late: bool, busy: bool) -> None:
    found = outcomes(late=late, busy=busy)
    assert found[Outcome.DIFFERS] == 0
    assert found[Outcome.EQUAL] > RUNS / 4, "a run that pauses proves little"


def test_rows_are_lost_where_keys_are_not_looked_up() -> None:
    assert outcomes(looks_up=False)[Outcome.DIFFERS]


def test_rows_are_lost_where_only_deletions_are_noted() -> None:
    assert outcomes(notes_arrivals=False, late=True, busy=False)[Outcome.DIFFERS]


def test_rows_are_lost_where_a_key_that_was_noted_again_is_forgotten() -> None:
    assert outcomes(counts=False, busy=False)[Outcome.DIFFERS]


def test_a_row_that_was_not_seen_before_is_put_back_too_early() -> None:
    """Its INSERT follows, and finds it."""
    paused = outcomes(late=True)[Outcome.PAUSED]
    assert outcomes(waits=False, late=True)[Outcome.PAUSED] > paused
    assert outcomes(compares=False, late=True)[Outcome.PAUSED] > paused
