"""The rule for keys that are deleted in safe mode, on a model: two sources, a target, any order.

Rows move between the sources in two transactions, inserted first, while they are copied.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

KEYS = range(6)
RUNS = 400


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
    """What the program does is in `copy`, `apply` and `look_up`; the rest is the application."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.sources = [Source(), Source()]
        self.target: dict[int, int] = {}
        self.noted: set[int] = set()
        self.noting = True
        self.moving: list[tuple[Source, int]] = []
        self.values = 0
        for key in KEYS:
            self.chance.choice(self.sources).write(key, key)

    def write(self) -> None:
        """A change, or a step of a move."""
        self.values += 1
        if self.moving and self.chance.random() < 0.5:
            old, key = self.moving.pop(self.chance.randrange(len(self.moving)))
            old.write(key, None)
            return
        key = self.chance.choice(KEYS)
        holders = [source for source in self.sources if key in source.rows]
        if len(holders) != 1:
            return
        (old,) = holders
        (new,) = (source for source in self.sources if source is not old)
        if self.chance.random() < 0.3:
            old.write(key, self.values)
        else:
            new.write(key, self.values)
            self.moving.append((old, key))

    def end_moves(self) -> None:
        while self.moving:
            old, key = self.moving.pop()
            old.write(key, None)

    def copy(self) -> None:
        for source in self.sources:
            source.applied = len(source.log)
        chunks = [(source, key) for source in self.sources for key in KEYS]
        self.chance.shuffle(chunks)
        for source, key in chunks:
            self.write()
            if key in source.rows:
                self.target[key] = source.rows[key]
        for source in self.sources:
            self.write()
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
            if inserted and key in self.target and not safe:
                raise DuplicateError
            self.target[key] = value
        else:
            self.target.pop(key, None)
            if self.noting:
                self.noted.add(key)
        return True

    def look_up(self) -> None:
        for source in self.sources:
            for key in self.noted:
                if key in source.rows and key not in self.target:
                    self.target[key] = source.rows[key]
                    source.safe_until = len(source.log)
        self.noted.clear()
        self.noting = any(source.applied < source.safe_until for source in self.sources)


def run(seed: int, *, looks_up: bool) -> bool:
    """Whether the target is equal in the end, or the task paused."""
    world = World(seed)
    try:
        world.copy()
        for _ in range(10):
            if world.chance.random() < 0.5:
                world.write()
            world.apply()
        world.end_moves()
        while world.noting:
            while (
                any(s.applied < s.safe_until for s in world.sources) or world.chance.random() < 0.7
            ):
                if not world.apply():
                    break
            if not looks_up:
                break
            if all(s.applied >= s.safe_until for s in world.sources):
                # Moves that were under way at the end have ended while keys were still noted.
                while world.apply():
                    pass
                world.look_up()
                if world.chance.random() < 0.5:
                    for _ in range(5):
                        world.write()
                    world.end_moves()
        while world.apply():
            pass
    except DuplicateError:
        return True
    wanted = {key: value for source in world.sources for key, value in source.rows.items()}
    return world.target == wanted


def test_no_row_is_lost_in_any_order() -> None:
    assert [seed for seed in range(RUNS) if not run(seed, looks_up=True)] == []


def test_rows_are_lost_where_keys_are_not_looked_up() -> None:
    assert any(not run(seed, looks_up=False) for seed in range(RUNS))
