"""Online schema changes made by the real tools, with writes going on."""

from __future__ import annotations

import signal
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from tests.support.tasks.merging import Merging
from tests.support.tasks.online_tools import (
    CHANGE,
    begin_gh_ost,
    columns,
    ended,
    following,
    gh_ost,
    pt_osc,
    run,
)

pytestmark = pytest.mark.slow

ALL = pytest.mark.parametrize(
    "source",
    ["mariadb_source", "mysql56_source", "mysql_source", "mariadb11_source"],
    indirect=True,
)


def executed(merging: Merging) -> list[object]:
    """The schema changes that the target was given."""
    name = merging.database
    rows = merging.target.execute(f"SELECT statement FROM {name}_meta.{name}_ddl ORDER BY version")
    return [row[0] for row in rows]


@pytest.mark.parametrize(
    ("source", "mode"),
    [
        ("mariadb_source", "pessimistic"),
        ("mariadb_source", ""),
        ("mysql_source", "pessimistic"),
        ("mysql_source", ""),
    ],
    indirect=["source"],
)
async def test_pt_online_schema_change(merging: Merging, mode: str) -> None:
    merging.more["shard-mode"] = mode
    async with following(merging, 2) as writer:
        with writer.going_on():
            for shard in ("x_1", "x_2"):
                await anyio.to_thread.run_sync(run, pt_osc(merging, shard))


@ALL
async def test_three_shards_in_three_ways(merging: Merging, tmp_path: Path) -> None:
    merging.more["shard-mode"] = "pessimistic"
    async with following(merging, 3) as writer:
        with writer.going_on():
            running = await begin_gh_ost(merging, writer, gh_ost(merging, "x_1", tmp_path))
            assert await ended(running) == 0
            await anyio.to_thread.run_sync(run, pt_osc(merging, "x_2"))
            merging.do(f"ALTER TABLE x_3 {CHANGE}")
    assert len(executed(merging)) == 1, executed(merging)


@ALL
async def test_a_run_that_was_killed_and_begun_again(merging: Merging, tmp_path: Path) -> None:
    async with following(merging, 1) as writer:
        with writer.going_on():
            throttle = tmp_path / "throttle"
            throttle.touch()
            command = gh_ost(merging, "x_1", tmp_path, "ADD COLUMN wrong INT")
            throttled = [*command, f"--throttle-additional-flag-file={throttle}"]
            first = await begin_gh_ost(merging, writer, throttled, "wrong")
            first.send_signal(signal.SIGKILL)
            first.wait()
            second = await begin_gh_ost(merging, writer, gh_ost(merging, "x_1", tmp_path))
            assert await ended(second) == 0
    assert columns(merging.target, merging, "x") == ["id", "v", "c"]


@ALL
async def test_a_run_that_is_cancelled_while_it_is_throttled_and_begun_again(
    merging: Merging, tmp_path: Path
) -> None:
    async with following(merging, 1) as writer:
        with writer.going_on():
            throttle, panic = tmp_path / "throttle", tmp_path / "panic"
            throttle.touch()
            first = await begin_gh_ost(
                merging,
                writer,
                [
                    *gh_ost(merging, "x_1", tmp_path, "ADD COLUMN wrong INT"),
                    f"--throttle-additional-flag-file={throttle}",
                    f"--panic-flag-file={panic}",
                ],
                "wrong",
            )
            panic.touch()
            assert await ended(first) != 0
            second = await begin_gh_ost(merging, writer, gh_ost(merging, "x_1", tmp_path))
            assert await ended(second) == 0
            third = gh_ost(merging, "x_1", tmp_path, "ADD INDEX by_c (c)")
            assert await ended(await begin_gh_ost(merging, writer, third)) == 0
    assert columns(merging.target, merging, "x") == ["id", "v", "c"]
    assert "KEY `by_c`" in str(merging.on(merging.target, "SHOW CREATE TABLE x"))


@ALL
async def test_a_cut_over_that_is_deferred(merging: Merging, tmp_path: Path) -> None:
    merging.more["shard-mode"] = "pessimistic"
    async with following(merging, 2) as writer:
        flag = tmp_path / "defer"
        flag.touch()
        command = [*gh_ost(merging, "x_1", tmp_path), f"--defer-cut-over-flag-file={flag}"]
        running = await begin_gh_ost(merging, writer, command)
        for _ in range(4):
            await anyio.to_thread.run_sync(writer.write, 40)
            merging.source.execute("FLUSH BINARY LOGS")
        merging.do(f"ALTER TABLE x_2 {CHANGE}")
        await anyio.to_thread.run_sync(writer.write, 20)
        flag.unlink()
        assert await ended(running) == 0
        await anyio.to_thread.run_sync(writer.write, 20)


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
@pytest.mark.parametrize("scheme", ["gh-ost", "pt"])
async def test_other_names_and_the_old_spelling(
    merging: Merging, scheme: str, tmp_path: Path
) -> None:
    merging.more |= {
        "online-ddl": False,
        "online-ddl-scheme": scheme,
        "shadow-table-rules": [r"^(.+)_shadow$", r"^_(.+)_gho$"],
        "trash-table-rules": [r"^_(.+?)(?:_\d{14})?_(?:del|ghc)$", r"^_(.+)_old$"],
    }
    if scheme == "gh-ost":
        command = [*gh_ost(merging, "x_1", tmp_path), "--timestamp-old-table"]
    else:
        command = [*pt_osc(merging, "x_1"), "--new-table-name=%T_shadow"]
    async with following(merging, 1) as writer:
        with writer.going_on():
            await anyio.to_thread.run_sync(run, command)
    assert columns(merging.target, merging, "x") == ["id", "v", "c"]


# With MySQL 8.0 and newer, and MariaDB 10, the tool refuses to do so.
@pytest.mark.parametrize("source", ["mysql56_source"], indirect=True)
@pytest.mark.parametrize("mode", ["", "pessimistic"])
async def test_a_table_that_is_dropped_to_make_room_for_its_ghost(
    merging: Merging, mode: str
) -> None:
    merging.more["shard-mode"] = mode
    other = f"{merging.database}_other"
    async with following(merging, 1) as writer:
        # Tables of another schema, which is not replicated, refer to it.
        merging.do(
            f"CREATE DATABASE {other}",
            f"CREATE TABLE {other}.child (id INT PRIMARY KEY, x INT, FOREIGN KEY (x)"
            f" REFERENCES {merging.database}.x_1 (id))",
        )
        command = [*pt_osc(merging, "x_1"), "--alter-foreign-keys-method=drop_swap"]
        await anyio.to_thread.run_sync(run, command)
        await anyio.to_thread.run_sync(writer.write, 20)
    assert columns(merging.target, merging, "x") == ["id", "v", "c"]


@pytest.mark.parametrize("source", ["mariadb_source", "mysql_source"], indirect=True)
async def test_tables_that_are_swapped_by_hand(merging: Merging) -> None:
    async with following(merging, 1) as writer:
        options = ("--no-swap-tables", "--no-drop-new-table", "--no-drop-triggers")
        with writer.going_on():
            await anyio.to_thread.run_sync(run, [*pt_osc(merging, "x_1"), *options])
        merging.do("RENAME TABLE x_1 TO _x_1_old, _x_1_new TO x_1", "DROP TABLE _x_1_old")
        await anyio.to_thread.run_sync(writer.write, 20)
    assert columns(merging.target, merging, "x") == ["id", "v", "c"]
