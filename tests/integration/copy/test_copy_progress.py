"""What `status` shows of a full copy while a chunk is being written."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE

ROWS = 400


async def test_rows_of_a_chunk_are_shown_before_it_is_done(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode = "full"
    columns = "(id INT PRIMARY KEY, v LONGTEXT)"
    merging.create("x", columns, target=columns)
    merging.do(f"INSERT INTO x_1 SELECT seq, REPEAT('v', 100000) FROM seq_1_to_{ROWS}")
    generation = merging.generation()
    with (
        merging.target.connect(database=merging.database) as connection,
        connection.cursor() as other,
        anyio.fail_after(PATIENCE),
    ):
        # Its lock keeps the last row, and so the chunk, from being written.
        other.execute("BEGIN")
        other.execute(f"INSERT INTO x (id, v) VALUES ({ROWS}, 'other')")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(generation.run, anyio.Event(), anyio.Event())
            while generation.copy is None or not generation.copy.progress.figures().rows:
                await anyio.sleep(LOOK_SECONDS)
            progress = generation.copy.progress
            shown = progress.figures()
            assert 0 < shown.rows < ROWS
            assert shown.bytes >= shown.rows * 100_000
            assert (progress.rows, shown.chunks, shown.tables_done) == (0, 0, 0)
            other.execute("ROLLBACK")
    figures = progress.figures()
    assert (figures.rows, figures.percent) == (ROWS, 100.0)
    assert merging.differences() == {}
