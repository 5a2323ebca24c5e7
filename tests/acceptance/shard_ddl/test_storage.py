"""Statements that say how the server of a shard stores it: no target waits, or is blocked."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import MakeEstate
from tests.support.tasks.shard_ddl import ShardedEstate

slow = pytest.mark.slow
MODES = ["pessimistic", pytest.param("optimistic", marks=slow), pytest.param("", marks=slow)]

ALONE = (
    "ROW_FORMAT=DYNAMIC",
    "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8",
    "MAX_ROWS=1000, MIN_ROWS 10",
    "CHECKSUM=1",
    "PACK_KEYS=1",
    "STATS_PERSISTENT=1, STATS_AUTO_RECALC=0",
    "ENGINE=InnoDB",
    "ENGINE=MyISAM ROW_FORMAT=FIXED KEY_BLOCK_SIZE=0",
    "ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
    "FORCE",
)
MIXED = (
    ("ADD c INT NULL, ROW_FORMAT=COMPACT", "{}, 1"),
    ("ENGINE=InnoDB, ADD d INT NULL, FORCE", "{}, 1, 2"),
    ("ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4 CHECKSUM=0, DROP c", "{}, 2"),
)


@pytest.mark.also_tidb(slow=True)
@pytest.mark.parametrize("mode", MODES)
async def test_no_shard_waits_for_another_way_to_store_a_table(
    estate: ShardedEstate, mode: str
) -> None:
    estate.mode = mode
    estate.create("A1", "A2", "B1")
    async with estate.merging():
        for action in ALONE:
            estate.ddl("A1", action)
            estate.put("A1", "{}")
        await estate.settled()
        for action, row in MIXED:
            for shard in ("B1", "A2", "A1"):
                estate.ddl(shard, action)
                estate.put(shard, row)
            await estate.settled()
        estate.run("A1", "OPTIMIZE TABLE {t}")
        estate.put("A1", "{}, 3")
        await estate.settled()


@pytest.mark.also_tidb(slow=True)
@pytest.mark.parametrize("mode", MODES)
async def test_a_created_table_gets_what_its_target_accepts(
    estate: ShardedEstate, mode: str
) -> None:
    estate.mode = mode
    estate.create()
    table = (
        "(id INT PRIMARY KEY, v VARCHAR(9)) ENGINE=InnoDB ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8"
        " CHECKSUM=1, PACK_KEYS=0 STATS_PERSISTENT=0 MAX_ROWS=77 COMMENT='ROW_FORMAT=FIXED'"
    )
    async with estate.merging():
        for shard in ("A1", "B1"):
            estate.run(shard, f"CREATE TABLE {{t}} {table}")
            estate.put(shard, "{}, 'a'")
        estate.shards = ["A1", "B1"]
        await estate.caught_up()
        await estate.settled()
    shown = _shown(estate)
    assert "COMMENT='ROW_FORMAT=FIXED'" in shown
    if "TiDB" not in str(estate.target.execute("SELECT VERSION()")):
        assert "ROW_FORMAT=COMPRESSED" in shown


@pytest.mark.parametrize("mode", MODES)
async def test_an_option_is_set_once(mariadb_estate: ShardedEstate, mode: str) -> None:
    estate = mariadb_estate
    estate.mode = mode
    estate.create("A1", "B1")
    async with estate.merging():
        estate.ddl("A1", "ROW_FORMAT=COMPRESSED")
        estate.put("A1", "{}")
        await estate.settled()
        assert "ROW_FORMAT=COMPRESSED" in _shown(estate)
        made = _made(estate)
        estate.ddl("B1", "ROW_FORMAT=COMPRESSED")
        estate.put("B1", "{}")
        await estate.settled()
    assert _made(estate) == made


@pytest.mark.parametrize("mode", MODES)
async def test_an_option_of_another_kind_of_server_is_left_out(
    estate_of: MakeEstate, mode: str
) -> None:
    """MySQL's words for what MariaDB calls otherwise, or does not have."""
    estate = estate_of(("mysql_source", "mariadb_source"))
    estate.mode = mode
    estate.create("A1", "B1")
    async with estate.merging():
        for action in ("COMPRESSION='zlib'", "AUTOEXTEND_SIZE=4M"):
            estate.ddl("A1", action)
            estate.put("A1", "{}")
        await estate.settled()
        estate.ddl("A1", "COMPRESSION='lz4', ADD c INT")
        estate.put("A1", "{}, 1")
        estate.ddl("B1", "ADD c INT")
        estate.put("B1", "{}, 1")
        await estate.settled()


def _shown(estate: ShardedEstate) -> str:
    return str(estate.target.execute(f"SHOW CREATE TABLE {estate.db}.t")[0][1])


def _made(estate: ShardedEstate) -> object:
    """When the target was made, or rebuilt."""
    return estate.target.execute(
        "SELECT CREATE_TIME FROM information_schema.TABLES"
        f" WHERE TABLE_SCHEMA = '{estate.db}' AND TABLE_NAME = 't'"
    )
