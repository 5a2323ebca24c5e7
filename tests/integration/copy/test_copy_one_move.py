"""A row that moves to a shard which is copied later is no key of two shards."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from pyspark import SparkContext

from actors.copying import jobs
from replicator.pipeline.copy.copy_chunk import ChunkOutcome, CopySettings, copy_chunks
from replicator.pipeline.copy.copy_plan import CopyChunk
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles


@pytest.mark.parametrize("number", [2, 9])
async def test_a_row_that_moves_while_shards_are_copied(
    merging: Merging, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The first shard is copied with the row, and the second one, too."""
    merging.mode = "all"
    merging.create("x", "(id INT PRIMARY KEY, n INT, UNIQUE KEY (n))", shards=2)
    merging.do("INSERT INTO x_1 VALUES (1, 1), (2, 2)", "INSERT INTO x_2 VALUES (3, 3)")
    moved: list[CopyChunk] = []

    def moving(
        spark: SparkContext,
        chunks: Sequence[CopyChunk],
        settings: CopySettings,
        progress: str = "",
    ) -> tuple[ChunkOutcome, ...]:
        found: list[ChunkOutcome] = []
        for chunk in chunks:
            if chunk.copy.member.table == "x_2" and not moved:
                while merging.on(merging.target, "SELECT COUNT(*) FROM x") != ((2,),):
                    time.sleep(0.05)
                merging.do("DELETE FROM x_1 WHERE id = 2", f"INSERT INTO x_2 VALUES (2, {number})")
                moved.append(chunk)
            found += copy_chunks(spark, [chunk], settings, progress)
        return tuple(found)

    monkeypatch.setattr(jobs, "copy_chunks", moving)
    async with merging.running() as generation:
        await merging.copied(generation)
        await settles(merging.differences, {})
        merging.do("UPDATE x_2 SET n = n + 100")
        await settles(merging.differences, {})
    assert moved


async def test_a_row_of_nobody_is_not_replaced(merging: Merging) -> None:
    merging.mode = "all"
    merging.create("x", "(id INT PRIMARY KEY, n INT)")
    merging.do("INSERT INTO x_1 VALUES (1, 1)")
    merging.on(merging.target, "INSERT INTO x VALUES (1, 5)")
    assert (await merging.fault()).event == "copy.duplicate"
    assert merging.on(merging.target, "SELECT n FROM x") == ((5,),)
