"""Meta tables that are not those of this task, whole: a start tells of it, and follows nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from structlog.testing import capture_logs

from replicator.downstream.meta import all_tables
from replicator.downstream.meta.all_tables import META_TABLES
from replicator.downstream.meta.lease import LEASE_TABLE
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import copy_all_anew
from tests.support.tasks.task_files import start_of

ON_MARIADB = pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
SAVED = [table.suffix for table in META_TABLES if table is not LEASE_TABLE]


def meta(merging: Merging, suffix: str) -> str:
    return f"{merging.database}_meta.{merging.database}_{suffix}"


@contextmanager
def gone(merging: Merging, *suffixes: str) -> Iterator[None]:
    """Without these meta tables."""
    names = [(meta(merging, suffix), meta(merging, f"{suffix}_away")) for suffix in suffixes]
    for name, away in names:
        merging.target.execute(f"RENAME TABLE {name} TO {away}")
    try:
        yield
    finally:
        for name, away in names:
            merging.target.execute(f"DROP TABLE IF EXISTS {name}", f"RENAME TABLE {away} TO {name}")


async def copied(merging: Merging) -> None:
    merging.mode = "all"
    merging.create("x", "(id INT PRIMARY KEY, v VARCHAR(9))", shards=2)
    merging.do("INSERT INTO x_1 VALUES (1, 'a')", "INSERT INTO x_2 VALUES (2, 'b')")
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("INSERT INTO x_1 VALUES (3, 'c')")
        await merging.check(generation)


@pytest.mark.remedy("task.leftovers", "run")
@ON_MARIADB
async def test_a_copy_that_is_recorded_without_a_checkpoint_is_not_taken_for_done(
    merging: Merging,
) -> None:
    await copied(merging)
    # As somebody may forget a task by hand, and then give it a start.
    left = [suffix for suffix in SAVED if suffix not in ("copy", "chunk")]
    merging.instance = {"meta": start_of(merging.source)}
    merging.on(merging.target, "TRUNCATE TABLE x")
    merging.changed(mode="all")
    with gone(merging, *left):
        found = await merging.fault()
        assert found.event == "task.leftovers"
        assert meta(merging, "checkpoint").partition(".")[2] in found.message
        assert any("replicator remove" in way for way in found.remedies)
    merging.target.execute(f"DELETE FROM {meta(merging, 'checkpoint')}")
    found = await merging.fault()
    assert found.event == "task.leftovers"
    assert "its rows were copied" in found.message
    assert merging.on(merging.target, "SELECT COUNT(*) FROM x") == ((0,),)
    await copy_all_anew(merging, "x")


@pytest.mark.remedy("task.other-tables", "run")
@ON_MARIADB
async def test_a_table_of_another_program_is_not_taken_for_ours(merging: Merging) -> None:
    """As a task of DM with the same name leaves it in the same meta-schema."""
    merging.create("x", "(id INT PRIMARY KEY)")
    merging.target.execute(
        f"CREATE DATABASE {merging.database}_meta",
        f"CREATE TABLE {meta(merging, 'onlineddl')} (id VARCHAR(32), ghost_schema VARCHAR(128),"
        " ghost_table VARCHAR(128), ddls TEXT)",
    )
    found = await merging.fault()
    assert found.event == "task.other-tables"
    assert f"{merging.database}_onlineddl" in found.message
    merging.more["name"] = f"{merging.database}_2"
    merging.changed(mode="incremental")
    merging.generation()  # The task begins here.
    merging.do("INSERT INTO x_1 VALUES (1)")
    async with merging.running() as generation:
        await merging.check(generation)


@pytest.mark.remedy("task.leftovers", "resume")
@pytest.mark.slow
@ON_MARIADB
async def test_no_meta_table_may_be_missing_beside_the_others(merging: Merging) -> None:
    await copied(merging)
    merging.do("DELETE FROM x_1 WHERE id = 1")
    for suffix in SAVED:
        with gone(merging, suffix):
            found = await merging.fault()
            assert found.event == "task.leftovers", suffix
            assert f"{merging.database}_{suffix} missing" in found.message
            # Nor does it help to try again: nothing was made in its place.
            assert (await merging.fault()).event == "task.leftovers"
    with gone(merging, *SAVED):
        # Nothing is saved: it begins anew, and meets the rows in its target.
        assert (await merging.fault()).event == "copy.duplicate"
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.check(generation)


@ON_MARIADB
async def test_a_start_adds_what_an_earlier_release_did_not_have(
    merging: Merging, monkeypatch: pytest.MonkeyPatch
) -> None:
    await copied(merging)
    merging.target.execute(
        f"ALTER TABLE {meta(merging, 'checkpoint')} DROP COLUMN open_items",
        f"DROP TABLE {meta(merging, 'tracked_key')}",
    )
    assert (await merging.fault()).event == "task.other-tables"
    column = "open_items INT NOT NULL DEFAULT 0"
    monkeypatch.setattr(all_tables, "ADDED_COLUMNS", {"checkpoint": (column,)})
    monkeypatch.setattr(all_tables, "ADDED_TABLES", frozenset({"tracked_key"}))
    merging.do("INSERT INTO x_2 VALUES (4, 'd')")
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.check(generation)


@pytest.mark.remedy("task.other-sources", "run")
@pytest.mark.slow
@pytest.mark.parametrize("kept", [False, True])
async def test_a_task_of_the_same_name_with_other_sources(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mysql56_source: DatabaseServer,
    *,
    kept: bool,
) -> None:
    merging = merging_from(mariadb_source)
    await copied(merging)
    mysql56_source.execute(f"CREATE DATABASE {merging.database}")
    others = {**(merging.sources if kept else {}), "b": mysql56_source}
    merging.on(mysql56_source, "CREATE TABLE x_1 (id INT PRIMARY KEY, v VARCHAR(9))")
    merging.on(mysql56_source, "CREATE TABLE x_2 LIKE x_1", "INSERT INTO x_1 VALUES (7, 'd')")
    merging.sources = others
    merging.changed(mode="all")
    if not kept:
        found = await merging.fault()
        assert found.event == "task.other-sources"
        assert "belong to the sources a, but the task file has b" in found.message
        assert all("`replicator run" in way for way in found.remedies)
        await copy_all_anew(merging, "x")
        return
    # One that is added is copied like the first.
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.check(generation)
    del merging.sources["a"]
    merging.changed(mode="all")
    with capture_logs() as logged:
        async with merging.running() as generation:
            await merging.copied(generation)
            merging.on(mysql56_source, "INSERT INTO x_2 VALUES (8, 'e')")
            await merging.caught_up(generation)
    assert [e["source"] for e in logged if e["event"] == "task.source-left-out"] == ["a"]
    merging.sources = {"a": mariadb_source, "b": mysql56_source}
    merging.changed(mode="all")
    merging.do("INSERT INTO x_1 VALUES (9, 'f')")
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.check(generation)
