"""Remedies of `copy.shard-changed`, executed as the message prints them."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from replicator.events.fault_catalogue import shared_text
from replicator.sandbox.server import DatabaseServer
from tests.integration.copy.test_copy_ddl import LONG, copying, slow
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import copy_all_anew
from tests.support.tasks.running import LOOK_SECONDS, fault_of

pytestmark = pytest.mark.slow

MakeMerging = Callable[..., Merging]

COLUMNS = "(id INT NOT NULL, n INT NOT NULL, s VARCHAR(10), PRIMARY KEY (id))"
VALUES = ",".join(f"({i},{i * 3},'s{i}')" for i in range(1, 301))
MADE = (f"CREATE TABLE x_1 {COLUMNS}", f"INSERT INTO x_1 VALUES {VALUES}")
UNDONE = {
    "dropped-column": (
        "ALTER TABLE x_1 DROP COLUMN n",
        ("ALTER TABLE x_1 ADD COLUMN n INT NOT NULL AFTER id", "UPDATE x_1 SET n = id * 3"),
    ),
    "renamed-column": (
        "ALTER TABLE x_1 CHANGE n m INT NOT NULL",
        ("ALTER TABLE x_1 CHANGE m n INT NOT NULL",),
    ),
    "dropped-table": ("DROP TABLE x_1", MADE),
    "renamed-table": ("RENAME TABLE x_1 TO y_1", ("RENAME TABLE y_1 TO x_1",)),
}


@pytest.fixture(params=["", "pessimistic", "optimistic"], ids=["uncoordinated", "p", "o"])
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def estate(merging_from: MakeMerging, mysql_source: DatabaseServer, mode: str) -> Merging:
    """A task that copies two shards slowly."""
    merging = merging_from(mysql_source)
    slow(merging, mode, speed=100)
    merging.create("x", COLUMNS, shards=2, with_target=False)
    merging.do(MADE[1], "INSERT INTO x_2 SELECT id + 1000, n, s FROM x_1")
    return merging


@pytest.mark.remedy("copy.shard-changed", "resume")
@pytest.mark.parametrize("change", UNDONE)
async def test_a_shard_gets_its_former_structure_and_values_back(
    estate: Merging, change: str
) -> None:
    hidden, back = UNDONE[change]

    async def run() -> None:
        async with copying(estate, 1):
            estate.do("SET sql_log_bin = 0", hidden)
            await anyio.sleep_forever()

    with anyio.fail_after(LONG):
        fault = await fault_of(run())
    assert fault.event == "copy.shard-changed"
    assert fault.remedies[0].startswith("if nothing was written to the shard since: give it its")
    estate.do(*back)
    async with estate.running() as generation:
        await estate.copied(generation)
        await estate.check(generation)
        estate.do("UPDATE x_1 SET n = 7 WHERE id IN (1, 299)", "DELETE FROM x_2 WHERE id = 1001")
        await estate.check(generation)


@pytest.mark.remedy("copy.shard-changed", "copy anew")
async def test_a_shard_of_which_others_rows_were_read_is_copied_again(
    merging_from: MakeMerging, mysql_source: DatabaseServer, mode: str
) -> None:
    """Two tables without keys exchange their names during their copy; back again is no remedy."""
    merging = merging_from(mysql_source)
    slow(merging, mode, speed=100)
    merging.create("x", "(id INT NOT NULL, n INT)", shards=2, with_target=False)
    numbers = ",".join(f"({i},{i * 3})" for i in range(1, 301))
    merging.do(f"INSERT INTO x_1 VALUES {numbers}", "CREATE TABLE y_1 LIKE x_1")
    merging.do("INSERT INTO y_1 SELECT id + 5000, n FROM x_1")

    async def run() -> None:
        async with copying(merging, 1):
            merging.do("RENAME TABLE x_1 TO z, y_1 TO x_1, z TO y_1")
            await anyio.sleep_forever()

    with anyio.fail_after(LONG):
        fault = await fault_of(run())
    assert fault.event == "copy.shard-changed"
    assert fault.remedies == (f"finish the change on all shards, then {shared_text('copy_again')}",)
    merging.on(merging.target, "DROP TABLE IF EXISTS y_1")
    await copy_all_anew(merging, "x", dropped=True)


@pytest.mark.remedy("copy.shard-changed", "resume")
@pytest.mark.parametrize("mode", ["pessimistic"], indirect=True)
async def test_a_deferred_shard_that_was_dropped_in_secret_is_created_again(
    estate: Merging,
) -> None:
    change = "ALTER TABLE {} MODIFY n VARCHAR(9) NOT NULL"

    async def run() -> None:
        async with copying(estate, 1) as generation:
            estate.do(change.format("x_1"))
            await estate.copied(generation)
            estate.do("SET sql_log_bin = 0", "DROP TABLE x_1")
            estate.do(change.format("x_2"))
            await anyio.sleep_forever()

    with anyio.fail_after(LONG):
        fault = await fault_of(run())
    assert fault.event == "copy.shard-changed"
    assert "it was to be copied again, but it does not exist any more" in fault.message
    estate.do(MADE[0].replace("n INT", "n VARCHAR(9)"), MADE[1])
    async with estate.running() as generation:
        await estate.copied(generation)
        with anyio.fail_after(LONG):
            while estate.differences():
                await anyio.sleep(LOOK_SECONDS)
        await estate.check(generation)
