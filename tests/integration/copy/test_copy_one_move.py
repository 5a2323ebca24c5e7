"""A row that moves to a shard which is copied later is no key of two shards."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest
from pyspark import SparkContext

from actors.copying import jobs
from replicator.pipeline.copy.copy_chunk import ChunkOutcome, CopySettings, copy_chunks
from replicator.pipeline.copy.copy_plan import CopyChunk
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles


@pytest.fixture
def when_one_is_copied(
    merging: Merging, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., list[CopyChunk]]:
    """Returns what lets shards execute statements when the rows of x_1 are on the target, and x_2
    is not copied yet. It returns a list that has an item afterwards."""

    def when(*statements: str) -> list[CopyChunk]:
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
                    merging.do(*statements)
                    moved.append(chunk)
                found += copy_chunks(spark, [chunk], settings, progress)
            return tuple(found)

        monkeypatch.setattr(jobs, "copy_chunks", moving)
        return moved

    return when


@pytest.mark.parametrize("number", [2, 9])
async def test_a_row_that_moves_while_shards_are_copied(
    merging: Merging, when_one_is_copied: Callable[..., list[CopyChunk]], number: int
) -> None:
    """The first shard is copied with the row, and the second one, too."""
    merging.mode = "all"
    merging.create("x", "(id INT PRIMARY KEY, n INT, UNIQUE KEY (n))", shards=2)
    merging.do("INSERT INTO x_1 VALUES (1, 1), (2, 2)", "INSERT INTO x_2 VALUES (3, 3)")
    moved = when_one_is_copied(
        "DELETE FROM x_1 WHERE id = 2", f"INSERT INTO x_2 VALUES (2, {number})"
    )
    async with merging.running() as generation:
        await merging.copied(generation)
        await settles(merging.differences, {})
        merging.do("UPDATE x_2 SET n = n + 100")
        await settles(merging.differences, {})
    assert moved


@pytest.mark.parametrize("key", ["B", "b"])
async def test_a_row_with_a_text_key_that_moves_while_shards_are_copied(
    merging: Merging, when_one_is_copied: Callable[..., list[CopyChunk]], key: str
) -> None:
    merging.mode = "all"
    text = "VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci"
    merging.create("x", f"(id {text} PRIMARY KEY, n INT)", shards=2)
    merging.do("INSERT INTO x_1 VALUES ('a', 1), ('B', 2)", "INSERT INTO x_2 VALUES ('\u00e9', 3)")
    moved = when_one_is_copied(
        "DELETE FROM x_1 WHERE id = 'B'", f"INSERT INTO x_2 VALUES ('{key}', 9)"
    )
    async with merging.running() as generation:
        await merging.copied(generation)
        await settles(merging.differences, {})
        merging.do("UPDATE x_2 SET n = n + 100", f"DELETE FROM x_2 WHERE id = '{key}'")
        await settles(merging.differences, {})
    assert moved


@pytest.mark.parametrize(
    ("collation", "of_target"),
    [
        ("utf8mb4_general_ci", "utf8mb4_general_ci"),
        ("utf8mb4_bin", "utf8mb4_general_ci"),
        # Not all sources know it.
        ("utf8mb4_general_ci", "utf8mb4_general_nopad_ci"),
    ],
)
async def test_a_text_key_of_two_shards_is_found_as_the_target_compares_it(
    merging: Merging,
    when_one_is_copied: Callable[..., list[CopyChunk]],
    collation: str,
    of_target: str,
) -> None:
    """Also if the shard that has it tells the two texts apart."""
    merging.mode = "all"
    text = "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE"
    shard, target = (
        f"(id {text} {one} PRIMARY KEY, n INT)" for one in ("utf8mb4_general_ci", of_target)
    )
    merging.create("x", shard, shards=2, target=target)
    merging.do(
        f"ALTER TABLE x_1 MODIFY id {text} {collation}",
        "INSERT INTO x_1 VALUES ('a', 1), ('B', 2)",
        "INSERT INTO x_2 VALUES ('c', 3)",
    )
    moved = when_one_is_copied("INSERT INTO x_2 VALUES ('b', 9)")
    assert (await merging.fault()).event == "copy.duplicate"
    found = merging.on(merging.target, "SELECT id, n FROM x ORDER BY id")
    assert found == (("a", 1), ("B", 2))
    assert moved


async def test_a_row_of_nobody_is_not_replaced(merging: Merging) -> None:
    merging.mode = "all"
    merging.create("x", "(id INT PRIMARY KEY, n INT)")
    merging.do("INSERT INTO x_1 VALUES (1, 1)")
    merging.on(merging.target, "INSERT INTO x VALUES (1, 5)")
    assert (await merging.fault()).event == "copy.duplicate"
    assert merging.on(merging.target, "SELECT n FROM x") == ((5,),)
