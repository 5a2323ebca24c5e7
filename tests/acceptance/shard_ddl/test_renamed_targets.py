"""A RENAME that all shards of a target make: the target follows when the last one has made it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from replicator.mysql.names import TableName
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, copied
from tests.support.tasks.shard_ddl import SHARD, ShardedEstate

slow = pytest.mark.slow
MODES = ["pessimistic", "optimistic", pytest.param("", marks=pytest.mark.slow)]
SHARDS = ("A1", "A'1", "B1")


def _new(shard: str) -> str:
    return f"u{shard}"


def _rename(estate: ShardedEstate, shard: str, sql: str = "RENAME TABLE {t} TO {u}") -> None:
    estate.server(shard).execute(sql.format(t=estate.name(shard), u=estate.name(_new(shard))))


async def _moved(estate: ShardedEstate) -> None:
    """The target of the shards has its new name, and all rows."""
    estate.shards = list(map(_new, SHARDS))
    await estate.settled()
    assert not estate.target.execute(
        f"SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{estate.db}'"
        " AND TABLE_NAME = 't'"
    )


def _empty(estate: ShardedEstate) -> None:
    """Only the first target is there at the start."""
    estate.create(*SHARDS)


@pytest.mark.parametrize("mode", MODES)
async def test_the_target_follows_its_last_shard(mariadb_estate: ShardedEstate, mode: str) -> None:
    """Rows before, between and after; the shards out of step; schema changes around it."""
    estate = mariadb_estate
    estate.mode = mode
    _empty(estate)
    async with estate.merging():
        for shard in SHARDS:
            estate.put(shard, "{}")
            estate.ddl(shard, "ADD c INT NULL")
            estate.put(shard, "{}, 1")
        await estate.settled()
        for number, shard in enumerate(SHARDS):
            _rename(estate, shard)
            estate.put(_new(shard), "{}, 2")
            for other in SHARDS[number + 1 :]:
                estate.put(other, "{}, 3")
            await estate.caught_up()
        await _moved(estate)
        for shard in SHARDS:
            estate.ddl(_new(shard), "ADD d INT NULL")
            estate.put(_new(shard), "{}, 4, 4")
        await _moved(estate)


@pytest.mark.parametrize("mode", MODES)
async def test_the_former_name_is_used_again(mariadb_estate: ShardedEstate, mode: str) -> None:
    """By a table of another structure, and while other shards still have the former one."""
    estate = mariadb_estate
    estate.mode = mode
    _empty(estate)
    table = "(id INT PRIMARY KEY, v VARCHAR(9), w INT)"
    async with estate.merging():
        for shard in SHARDS:
            estate.ddl(shard, "ADD c INT NULL")
            estate.put(shard, "{}, 1")
        for shard in SHARDS:
            _rename(estate, shard)
            estate.run(shard, f"CREATE TABLE {{t}} {table}")
            estate.put(shard, "{}, 'new', 1")
            estate.put(_new(shard), "{}, 2")
            estate.ddl(shard, "ADD c INT NULL")
            estate.put(shard, "{}, 'new', 1, 5")
            await estate.caught_up()
        estate.shards = [*SHARDS, *map(_new, SHARDS)]
        await estate.settled()


@pytest.mark.parametrize("mode", MODES)
async def test_a_target_takes_the_place_of_another(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    """``RENAME t TO u, v TO t`` moves two targets; then everything changes places."""
    estate = mariadb_estate
    estate.mode = mode
    _empty(estate)
    async with estate.merging():
        for shard in SHARDS:
            estate.put(shard, "{}")
            _rename(estate, shard, "ALTER TABLE {t} RENAME TO {u}")
            estate.run(shard, "CREATE TABLE {t} (id INT PRIMARY KEY, v INT)")
            estate.put(shard, "{}, 5")
        estate.shards = [*SHARDS, *map(_new, SHARDS)]
        await estate.settled()
        for shard in SHARDS:
            _rename(estate, shard, "RENAME TABLE {t} TO {t}x, {u} TO {t}, {t}x TO {u}")
            estate.put(shard, "{}")
            estate.put(_new(shard), "{}, 6")
        await estate.settled()


REPLACED = (
    "CREATE TABLE {u} LIKE {t}",
    "ALTER TABLE {u} MODIFY id BIGINT, ADD w INT DEFAULT 5",
    "INSERT INTO {u} (id, v) SELECT id, v FROM {t}",
    "DROP TABLE {t}",
    "RENAME TABLE {u} TO {t}",
)


async def _begins_anew(estate: ShardedEstate) -> None:
    """A replaced target follows its shards."""
    await estate.settled()
    for shard in SHARDS:
        estate.ddl(shard, "ADD c INT NULL")
        estate.put(shard, "{}, 5, 6, 7")
    await estate.settled()


@slow
async def test_a_target_is_replaced_in_step(mariadb_estate: ShardedEstate) -> None:
    """The former target is dropped with its last shard, before the first new one has its name."""
    estate = mariadb_estate
    estate.mode = ""
    estate.create(*SHARDS, table="(id INT PRIMARY KEY, v INT)")
    async with estate.merging():
        for shard in SHARDS:
            estate.put(shard, "{}, 1")
        for sql in REPLACED:
            for shard in SHARDS:
                _rename(estate, shard, sql)
            await estate.caught_up()
        await _begins_anew(estate)


async def test_a_target_is_replaced_by_one_shard_after_the_other(
    mariadb_estate: ShardedEstate,
) -> None:
    """The first one waits until the others have dropped the former table, over a restart, too."""
    estate = mariadb_estate
    estate.mode = ""
    estate.create(*SHARDS, table="(id INT PRIMARY KEY, v INT)")
    async with estate.merging():
        for shard in SHARDS:
            estate.put(shard, "{}, 1")
        await estate.caught_up()
        for sql in REPLACED:
            _rename(estate, "A1", sql)
        estate.put("A1", "{}, 2, 3")
        estate.put("B1", "{}, 4")
        await estate.caught_up()
    async with estate.merging():
        estate.put("A'1", "{}, 5")
        await estate.caught_up()
        [lock] = estate.running.open_locks()
        assert lock.view.missing["b"] == (TableName(*estate.name("B1").split(".")),)
        for shard in ("B1", "A'1"):
            for sql in REPLACED:
                _rename(estate, shard, sql)
            estate.put(shard, "{}, 2, 3")
            await estate.caught_up()
        await _begins_anew(estate)


@pytest.mark.parametrize("mode", MODES)
async def test_one_shard_alone_waits_for_the_others(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    """The report names those that lack it; the task that starts again finds the same."""
    estate = mariadb_estate
    estate.mode = mode
    _empty(estate)
    async with estate.merging():
        _rename(estate, "A1")
        estate.put("uA1", "{}")
        estate.put("B1", "{}")
        await estate.has_rows(1)
    async with estate.merging():
        estate.put("uA1", "{}")
        estate.put("B1", "{}")
        await estate.caught_up()
        await estate.has_rows(2)
        [lock] = estate.running.open_locks()
        assert lock.view.missing == {
            "a": (TableName(*estate.name("A'1").split(".")),),
            "b": (TableName(*estate.name("B1").split(".")),),
        }
        for shard in ("B1", "A'1"):
            _rename(estate, shard)
        await _moved(estate)
    async with estate.merging():
        estate.put("uB1", "{}")
        await _moved(estate)


@pytest.mark.parametrize("mode", MODES)
async def test_a_change_together_with_the_rename(mariadb_estate: ShardedEstate, mode: str) -> None:
    estate = mariadb_estate
    estate.mode = mode
    estate.create(*SHARDS, table="(id INT PRIMARY KEY, c INT)")
    async with estate.merging():
        for shard in SHARDS:
            estate.put(shard, "{}, 1")
            _rename(estate, shard, "ALTER TABLE {t} CHANGE c e BIGINT NULL, RENAME TO {u}")
            estate.put(_new(shard), "{}, 2")
            await estate.caught_up()
        await _moved(estate)


@pytest.mark.parametrize("mode", MODES)
async def test_shards_that_were_copied(mariadb_estate: ShardedEstate, mode: str) -> None:
    """The task starts again while some wait: their new names are no tables that lack their rows."""
    estate = mariadb_estate
    estate.mode = mode
    _empty(estate)
    estate.task["task-mode"] = "all"
    for instance in estate.task["mysql-instances"]:  # type: ignore[attr-defined]
        instance.pop("meta", None)
    for shard in SHARDS:
        estate.put(shard, "{}")
    async with estate.merging() as generation:
        await copied(generation)
        await estate.has_rows(3)
    _rename(estate, "A1")
    estate.put("uA1", "{}")
    for _ in range(2):
        async with estate.merging() as generation:
            await copied(generation)
            estate.put("B1", "{}")
            estate.put("uA1", "{}")
            await estate.caught_up()
    for shard in ("B1", "A'1"):
        _rename(estate, shard)
        estate.put(_new(shard), "{}")
        estate.run(shard, f"DELETE FROM {estate.name(_new(shard))} LIMIT 1")
    async with estate.merging() as generation:
        await copied(generation)
        await _moved(estate)
    async with estate.merging() as generation:
        await copied(generation)
        estate.put("uA1", "{}")
        await _moved(estate)


@slow
@pytest.mark.parametrize("mode", ["optimistic", "pessimistic"])
async def test_a_shard_is_renamed_while_it_waits_for_others(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    """Its open statements stay open under the new name, also if no row follows them."""
    estate = mariadb_estate
    estate.mode = mode
    estate.create(*SHARDS, table="(id INT PRIMARY KEY, a INT, b INT, KEY k (a))")
    async with estate.merging():
        for shard in SHARDS:
            estate.put(shard, "{}, 1, 2")
        await estate.settled()
        for shard in SHARDS:
            estate.ddl(shard, "CHANGE a c INT", "CHANGE b d INT NOT NULL DEFAULT 5")
            _rename(estate, shard)
            await estate.caught_up()
        for shard in map(_new, SHARDS):
            estate.ddl(shard, "MODIFY d BIGINT NOT NULL, DROP KEY k")
            estate.put(shard, "{}, 3, 4")
        await _moved(estate)


@slow
@pytest.mark.parametrize("mode", ["optimistic", "pessimistic"])
async def test_a_renamed_target_has_all_its_shards_at_once(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    """What one shard has dropped since stays on the target while the others have it."""
    estate = mariadb_estate
    estate.mode = mode
    estate.create(*SHARDS, table="(id INT PRIMARY KEY, a INT NULL, b INT NOT NULL DEFAULT 5)")
    async with estate.merging():
        for shard in SHARDS:
            estate.put(shard, "{}, 1, 2")
        await estate.settled()
        for shard in reversed(SHARDS):
            _rename(estate, shard)
            estate.ddl(_new(shard), "DROP b, ADD INDEX i (a)", "MODIFY a BIGINT NOT NULL")
            await estate.caught_up()
        for shard in map(_new, SHARDS):
            estate.put(shard, "{}, 3")
        await _moved(estate)


@slow
@pytest.mark.parametrize("mode", ["optimistic", "pessimistic"])
async def test_shards_are_created_while_others_wait_for_another_name(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    """The first of them have other columns by then, which the target keeps."""
    estate = mariadb_estate
    estate.mode = mode
    table = "(id INT PRIMARY KEY, v VARCHAR(20), w INT)"
    estate.create("uA3", table=table)
    async with estate.merging():
        for shard in (*SHARDS, "A3"):
            old = _new(shard)
            if shard in SHARDS:
                estate.run(old, f"CREATE TABLE {{t}} {table}")
            estate.put(old, "{}, 'b', 2")
            estate.ddl(old, "MODIFY v VARCHAR(40) NOT NULL DEFAULT '', ADD x INT DEFAULT 5, DROP w")
            estate.put(old, "{}, 'd', 3")
            estate.run(old, f"RENAME TABLE {{t}} TO {estate.name(shard)}")
            estate.put(shard, "{}, 'c', 4")
            await estate.caught_up()
        estate.shards = [*SHARDS, "A3"]
        await estate.settled()


@pytest.mark.parametrize(
    "mode", ["optimistic", *(pytest.param(mode, marks=slow) for mode in ("pessimistic", ""))]
)
async def test_a_target_waits_until_all_sources_are_read(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    """The source that is read more slowly has a shard of the target that nobody knows of yet."""
    estate = mariadb_estate
    estate.mode = mode
    estate.create("A1")
    server, slow_table = estate.server("B1"), f"{estate.db}.slow"
    server.execute(f"CREATE TABLE {slow_table} (id INT PRIMARY KEY)")
    async with estate.merging():
        estate.put("A1", "{}")
        await estate.settled()
    for number in range(25):
        server.execute(f"ALTER TABLE {slow_table} ADD c{number} INT")
    estate.run("B1", "CREATE TABLE {t} (id INT PRIMARY KEY)")
    estate.put("B1", "{}")
    estate.shards = [_new("A1"), _new("B1")]
    for shard in ("A1", "B1"):
        _rename(estate, shard)
        estate.put(_new(shard), "{}")
    async with estate.merging():
        await estate.settled()


@pytest.mark.parametrize(
    "mode", ["optimistic", *(pytest.param(mode, marks=slow) for mode in ("pessimistic", ""))]
)
async def test_a_created_shard_waits_for_the_target_that_gets_its_name(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    """Its source has renamed the others of the target before, and other sources have not yet."""
    estate = mariadb_estate
    estate.mode = mode
    estate.create("A1", "B1")
    async with estate.merging():
        _rename(estate, "A1")
        estate.run("uA'1", "CREATE TABLE {t} (id INT PRIMARY KEY)")
        estate.ddl("uA'1", "ADD c INT NULL")
        estate.put("uA'1", "{}, 1")
        estate.put("B1", "{}")
        await estate.has_rows(1)
        await estate.caught_up()
        _rename(estate, "B1")
        for shard in ("uA1", "uB1"):
            estate.put(shard, "{}")
            estate.ddl(shard, "ADD c INT NULL")
        estate.shards = ["uA1", "uB1", "uA'1"]
        await estate.settled()


async def test_a_late_shard_of_a_rebuild_script_that_is_read_again(
    mariadb_estate: ShardedEstate,
) -> None:
    """Its first table joined a target of which no shard is left when it is read again."""
    estate = mariadb_estate
    estate.mode = ""
    estate.create("A'1", "B1", "uA'1", "uB1")
    async with estate.merging():
        estate.run("A'1", "DROP TABLE {t}")
        _rename_back(estate, "A'1")
        estate.run("A1", f"CREATE TABLE {{t}} {SHARD}")
        estate.run("uA1", f"CREATE TABLE {{t}} {SHARD}")
        estate.put("uA1", "{}")
        estate.put("uB1", "{}")
        await estate.caught_up()
        estate.run("B1", "DROP TABLE {t}")
        await estate.caught_up()
    async with estate.merging():
        estate.run("A1", "DROP TABLE {t}")
        for shard in ("A1", "B1"):
            _rename_back(estate, shard)
            estate.put(shard, "{}")
        estate.put("A'1", "{}")
        estate.shards = list(SHARDS)
        await estate.settled()


def _rename_back(estate: ShardedEstate, shard: str) -> None:
    sql = f"RENAME TABLE {estate.name(_new(shard))} TO {{t}}"
    estate.run(shard, sql)


@pytest.mark.parametrize(
    "mode", ["optimistic", *(pytest.param(mode, marks=slow) for mode in ("pessimistic", ""))]
)
async def test_a_created_shard_waits_for_the_targets_of_another_source(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    """Its own source has nothing else that waits."""
    estate = mariadb_estate
    estate.mode = mode
    estate.create("A1", "A'1")
    async with estate.merging():
        _rename(estate, "A1")
        estate.put("uA1", "{}")
        await estate.caught_up()
        estate.run("uB1", "CREATE TABLE {t} (id INT PRIMARY KEY)")
        estate.ddl("uB1", "ADD c INT NULL")
        estate.put("uB1", "{}, 1")
        estate.server("B1").execute(f"CREATE TABLE {estate.db}.other (id INT)")
        await estate.caught_up()
        _rename(estate, "A'1")
        for shard in ("uA1", "uA'1"):
            estate.put(shard, "{}")
            estate.ddl(shard, "ADD c INT NULL")
        estate.shards = ["uA1", "uA'1", "uB1"]
        await estate.settled()


@pytest.mark.parametrize("mode", ["pessimistic", ""])
async def test_a_family_that_sources_rename_in_different_orders_is_shown(
    mariadb_estate: ShardedEstate, mode: str
) -> None:
    """Each of the two targets waits for a shard that is read when the other one is renamed."""
    estate = mariadb_estate
    estate.mode = mode
    estate.create("uA1", "uB1", table=SHARD)
    task: dict[str, Any] = estate.task
    for letter in "vw":
        route = {"table-pattern": f"{letter}*", "target-table": letter}
        task["routes"][letter] = {**task["routes"]["merge"], **route}
        for instance in task["mysql-instances"]:
            instance["route-rules"].append(letter)
    async with estate.merging():
        for shard in "A1", "B1":
            key = f"FOREIGN KEY (p) REFERENCES {estate.name(f'u{shard}')} (id) ON DELETE CASCADE"
            estate.run(shard, f"CREATE TABLE {{t}} (id INT PRIMARY KEY, p INT, {key})")
            estate.shards.append(shard)
        await estate.settled()
        estate.run("uA1", f"RENAME TABLE {{t}} TO {estate.db}.v1")
        with anyio.fail_after(PATIENCE):
            while not (reasons := [lock.reason for lock in estate.running.open_locks()]):
                await anyio.sleep(LOOK_SECONDS)
        assert not any("different orders" in reason for reason in reasons)
        for shard, name in ("A1", "w1"), ("B1", "w1"), ("uB1", "v1"):
            estate.run(shard, f"RENAME TABLE {{t}} TO {estate.db}.{name}")
        with anyio.fail_after(PATIENCE):
            while len(locks := estate.running.open_locks()) < 2:
                await anyio.sleep(LOOK_SECONDS)
        assert all("different orders" in lock.reason for lock in locks)
        assert all("copy everything again" in lock.remedies[-1].text for lock in locks)
