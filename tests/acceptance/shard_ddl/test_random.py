"""Seeded random interleavings of rows, DDL, renames, new and dropped shards over two targets.

Every shard goes through the same changes in the end; then both targets must equal their shards.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.support.tasks.shard_ddl import ShardedEstate

pytestmark = pytest.mark.slow

CHANGES = {
    "t": (
        ("ADD c1 INT", ("c1",)),
        ("ADD c2 VARCHAR(10) DEFAULT 'x', ADD INDEX i (c1)", ("c1", "c2")),
        ("DROP COLUMN c1", ("c2",)),
        ("CHANGE c2 c3 VARCHAR(20) DEFAULT 'y'", ("c3",)),
        ("ADD c1 INT", ("c1", "c3")),
        ("MODIFY c1 BIGINT DEFAULT 4", ("c1", "c3")),
    ),
    "u": (
        ("ADD d INT", ("d",)),
        ("DROP COLUMN d", ()),
        ("ADD d INT", ("d",)),
        ("MODIFY id BIGINT", ("d",)),
    ),
}
"""For each target the changes, each with the columns beside the key that it leaves."""


LONG = 300.0
"""Seconds for dozens of changes, one after the other, on a busy machine."""


class Walker:
    """Takes random steps on the shards; ``versions`` are the changes that each has behind it."""

    def __init__(self, estate: ShardedEstate, seed: int) -> None:
        self.estate = estate
        self.random = Random(seed)
        self.versions = dict.fromkeys(estate.shards, 0)
        self._names = 10

    def step(self) -> None:
        """One statement on one shard."""
        shard = self.random.choice(sorted(self.versions))
        kind = self.random.choices(
            (self.insert, self.update, self.delete, self.move, self.change, self.rename),
            (30, 20, 5, 5, 25, 3),
        )[0]
        kind(shard)

    def insert(self, shard: str) -> None:
        """A row with its key only, the rest being defaults."""
        count = self.random.randint(1, 3)
        values = ", ".join(f"({self.estate.key()})" for _ in range(count))
        self.estate.run(shard, f"INSERT INTO {{t}} (id) VALUES {values}")

    def update(self, shard: str) -> None:
        """Some of the rows get other values."""
        for column in self._columns(shard):
            number = self.random.randint(1, 99)
            self.estate.run(shard, f"UPDATE {{t}} SET {column} = {number} WHERE id % 3 = 0")

    def delete(self, shard: str) -> None:
        """Some of the rows go."""
        self.estate.run(shard, "DELETE FROM {t} WHERE id % 7 = 1")

    def move(self, shard: str) -> None:
        """Some of the rows get another key."""
        self.estate.run(shard, "UPDATE {t} SET id = id + 100000 WHERE id < 100000 AND id % 5 = 0")

    def change(self, shard: str) -> None:
        """The next change of the shard's target, if there is one."""
        changes = CHANGES[self._target(shard)]
        if self.versions[shard] < len(changes):
            self.estate.ddl(shard, changes[self.versions[shard]][0])
            self.versions[shard] += 1

    def rename(self, shard: str) -> None:
        """The shard gets an unused name."""
        self._names += 1
        prefix = "u" if shard.startswith("u") else ""
        new = f"{prefix}{shard.removeprefix('u')[0]}{self._names}"
        self.estate.run(shard, f"RENAME TABLE {{t}} TO {self.estate.name(new)}")
        self.versions[new] = self.versions.pop(shard)
        self.estate.shards = list(self.versions)

    def finish(self) -> None:
        """All changes of all shards, in a random order."""
        while behind := [s for s, v in self.versions.items() if v < len(CHANGES[self._target(s)])]:
            shard = self.random.choice(sorted(behind))
            self.change(shard)
            self.insert(shard)
            self.update(shard)

    def _target(self, shard: str) -> str:
        return "u" if shard.startswith("u") else "t"

    def _columns(self, shard: str) -> tuple[str, ...]:
        done = self.versions[shard]
        return CHANGES[self._target(shard)][done - 1][1] if done else ()


@pytest.mark.parametrize("seed", range(3))
async def test_random_steps(mixed_estate: ShardedEstate, seed: int) -> None:
    estate = mixed_estate
    estate.create("A1", "A2", "B1", "B2", "uA1", "uB1", "uB2")
    walker = Walker(estate, seed)
    async with estate.merging():
        for _ in range(40):
            walker.step()
        await estate.caught_up(LONG)
        for _ in range(20):
            walker.step()
    for _ in range(20):
        walker.step()
    async with estate.merging():
        walker.finish()
        await estate.settled(LONG)
