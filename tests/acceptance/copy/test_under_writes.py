"""Tables of every shape copied while they change; equal once the binlog is caught up with."""

from __future__ import annotations

import zlib
from pathlib import Path

import anyio
import pytest
from pyspark import SparkContext

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE
from tests.support.values.row_shapes import SHAPES, Writers, fill

KINDS = [("mariadb_source", "mariadb_source_full"), ("mysql56_source", "mariadb_source")]


@pytest.fixture(params=KINDS, ids=" ".join)
def merging(
    request: pytest.FixtureRequest,
    spark: SparkContext,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> Merging:
    sources = dict(zip("ab", map(request.getfixturevalue, request.param), strict=True))
    merging = Merging(spark, tmp_path, sources, target_server, database_name)
    merging.mode = "all"
    # Values that move from row to row are met twice, and no two shards have the same key.
    merging.more = {
        "mydumpers": {"small": {"rows": 50}},
        "loaders": {"moving": {"on-duplicate-logical": "replace"}},
    }
    merging.instance = {"mydumper-config-name": "small", "loader-config-name": "moving"}
    return merging


async def test_every_shape_is_equal_after_a_copy_under_constant_writes(merging: Merging) -> None:
    for name, shape in SHAPES.items():
        merging.create(name, f"({shape.columns})", shards=2, with_target=False)
    for number, server in enumerate(merging.sources.values()):
        fill(server, merging.database, number, 150)
    writers = Writers(merging.sources, merging.database, zlib.crc32(merging.database.encode()))
    async with merging.running() as generation:
        with writers.running(pause=0.2):
            await merging.copied(generation, 300)
            with anyio.fail_after(PATIENCE):
                while writers.transactions <= 100:
                    await anyio.sleep(LOOK_SECONDS)
        assert generation.copy is not None
        assert generation.copy.progress.chunks > len(SHAPES) * 4 * 2
        # The bytes of latin1 are others on TiDB; the text is the same.
        await merging.check(generation, {"keyed": "id, n, CONVERT(s USING utf8mb4)"})
