"""Shards that are created while others are being altered, in tasks with coordinated DDL.

None of the tables has a key, so a row that is applied twice, or is lost, shows.
"""

from __future__ import annotations

import pytest

from tests.support.tasks.shard_ddl import ShardedEstate

OLD = "(id INT, v INT)"
OLDEST = "(id INT)"
NEW = "(id INT, v INT, c INT DEFAULT 5)"
ADD = "ALTER TABLE {t} ADD c INT DEFAULT 5"

Story = tuple[tuple[str, str], ...]
"""Statements in their order, each at the source of a shard, whose name is ``{t}``; ``{k}`` is a
new number."""


def _row(shard: str, *, new: bool) -> tuple[str, str]:
    return shard, f"INSERT INTO {{t}} VALUES ({{k}}, {{k}}{', {k}' if new else ''})"


START: Story = (("A1", ADD), _row("A1", new=True))
ALTERED: Story = (_row("A3", new=False), ("A3", ADD), _row("A3", new=True))
CREATED: Story = (("A3", f"CREATE TABLE {{t}} {OLD}"), *ALTERED)
END: Story = (("B1", ADD), _row("B1", new=True))
LATE: Story = (("B3", f"CREATE TABLE {{t}} {OLD}"),)
LATE_ALTERED: Story = (_row("B3", new=False), ("B3", ADD), _row("B3", new=True))
MORE = "ALTER TABLE {t} ADD KEY (v)"
SECOND = "ALTER TABLE {t} MODIFY v BIGINT"

GONE: Story = tuple((shard, "ALTER TABLE {t} DROP c") for shard in ("A1", "B1"))
AGAIN: Story = (("A3", f"CREATE TABLE {{t}} {OLD}"), _row("A3", new=False))
DOUBTFUL: Story = (("A3", ADD), _row("A3", new=True), _row("A1", new=False))

STORIES: dict[str, tuple[Story, ...]] = {
    "a-column-that-came-and-went": (
        (*START, *END, *GONE),
        AGAIN,
        DOUBTFUL,
        (("A3", "ALTER TABLE {t} DROP c"), _row("A3", new=False), _row("A1", new=False)),
        (("A3", SECOND), ("A1", SECOND), ("B1", SECOND), _row("A3", new=False)),
    ),
    "a-column-that-comes-again": (
        (*START, *END, *GONE),
        AGAIN,
        DOUBTFUL,
        (("A1", ADD), _row("A1", new=True)),
        (("B1", ADD), _row("B1", new=True), _row("A3", new=True)),
    ),
    "a-column-that-came-and-went-before-others": (
        (*START, *END, *GONE),
        (*AGAIN, *DOUBTFUL, ("B1", SECOND), _row("B1", new=False)),
        (("A1", SECOND), ("A3", "ALTER TABLE {t} DROP c"), _row("A3", new=False)),
        (("A3", SECOND), _row("A3", new=False), _row("A1", new=False)),
    ),
    "created": (START, CREATED, END),
    "altered-behind-the-execution": (START, CREATED[:2], END, CREATED[2:]),
    "created-behind-the-execution": (START, END, CREATED),
    "created-at-the-lagging-source": (START, LATE, LATE_ALTERED, END),
    "created-new": (START, (("A3", f"CREATE TABLE {{t}} {NEW}"), _row("A3", new=True)), END),
    "created-new-before-all-others": (
        (("A3", f"CREATE TABLE {{t}} {NEW}"), _row("A3", new=True), *START),
        END,
    ),
    "created-older-than-the-target": (
        (("A3", f"CREATE TABLE {{t}} {OLDEST}"), ("A3", "INSERT INTO {t} VALUES ({k})")),
        (("A3", "ALTER TABLE {t} ADD v SMALLINT"), _row("A3", new=False), _row("A1", new=False)),
        START,
        (("A3", "ALTER TABLE {t} MODIFY v INT"), _row("A3", new=False), _row("B1", new=False)),
        (("B3", f"CREATE TABLE {{t}} {OLDEST}"), ("B3", "INSERT INTO {t} VALUES ({k})")),
        (*END, ("A3", ADD), _row("A3", new=True)),
        (("B3", "ALTER TABLE {t} ADD v SMALLINT"), _row("B3", new=False)),
        (("B3", "ALTER TABLE {t} MODIFY v INT"), ("B3", ADD), _row("B3", new=True)),
    ),
    "created-new-and-changed-back": (
        (("A3", f"CREATE TABLE {{t}} {NEW}"), _row("A3", new=True)),
        (("A3", "ALTER TABLE {t} DROP c"), _row("A3", new=False), *START, *END),
        (*GONE, _row("A1", new=False), _row("A3", new=False)),
        tuple((shard, SECOND) for shard in ("A1", "A3", "B1")),
    ),
    "created-older-and-with-another-comment": (
        (("A3", f"CREATE TABLE {{t}} {OLDEST}"), ("A3", "INSERT INTO {t} VALUES ({k})")),
        (("A3", "ALTER TABLE {t} ADD v INT COMMENT 'x'"), _row("A3", new=False)),
        (_row("A1", new=False), *START, ("A3", ADD), _row("A3", new=True)),
        END,
    ),
    "created-like-what-others-get-in-steps": (
        (("A3", f"CREATE TABLE {{t}} {OLD} COMMENT='x'"), _row("A3", new=False)),
        (("A1", SECOND), _row("A1", new=False), ("A1", "ALTER TABLE {t} MODIFY v INT")),
        (("A1", "ALTER TABLE {t} COMMENT='x'"), ("A1", MORE), _row("A1", new=False)),
        (("A3", MORE), _row("A3", new=False)),
        (("B1", SECOND), _row("B1", new=False)),
        (("B1", "ALTER TABLE {t} MODIFY v INT"), ("B1", "ALTER TABLE {t} COMMENT='x'")),
        (("B1", MORE), _row("B1", new=False), _row("A3", new=False)),
    ),
    "created-new-at-the-lagging-source": (
        START,
        (("B3", f"CREATE TABLE {{t}} {NEW}"), _row("B3", new=True)),
        END,
        (("B3", SECOND), ("B1", SECOND), ("A1", SECOND), _row("B3", new=True)),
    ),
    "like-before": (
        (("A3", "CREATE TABLE {t} LIKE {A1}"),),
        START,
        ALTERED,
        END,
    ),
    "like-behind": (START, (("A3", "CREATE TABLE {t} LIKE {A1}"), _row("A3", new=True)), END),
    "dropped-and-created": (
        START,
        (("A1", "DELETE FROM {t}"), ("A1", "DROP TABLE {t}"), ("A1", f"CREATE TABLE {{t}} {OLD}")),
        (_row("A1", new=False), ("A1", ADD), _row("A1", new=True)),
        END,
    ),
    "replaced": (
        START,
        (("A1", "DELETE FROM {t}"), ("A1", f"CREATE OR REPLACE TABLE {{t}} {OLD}")),
        (_row("A1", new=False), ("A1", ADD), _row("A1", new=True)),
        END,
    ),
    "renamed": (
        START,
        CREATED[:2],
        (("A3", "RENAME TABLE {t} TO {A4}"),),
        (_row("A4", new=False), ("A4", ADD), _row("A4", new=True)),
        END,
    ),
    "dropped-again": (
        START,
        (*CREATED, ("A3", "DELETE FROM {t}"), ("A3", "DROP TABLE {t}")),
        (*LATE, *LATE_ALTERED, ("B3", "DELETE FROM {t}"), ("B3", "DROP TABLE {t}")),
        END,
    ),
    "several-locks": (
        (*START, ("A1", SECOND), _row("A1", new=True)),
        CREATED,
        (("A3", SECOND), _row("A3", new=True), *END),
        (("B1", SECOND), _row("B1", new=True)),
    ),
    "several-locks-behind-the-first": (
        (*START, ("A1", SECOND), _row("A1", new=True), *END),
        CREATED,
        (("A3", SECOND), _row("A3", new=True)),
        (("B1", SECOND), _row("B1", new=True)),
    ),
    "a-key-that-rows-do-not-show": (
        (("A1", MORE), _row("A1", new=False)),
        (CREATED[0], _row("A3", new=False), ("A3", MORE), _row("A3", new=False)),
        (("B1", MORE), _row("B1", new=False)),
    ),
    "a-key-behind-the-execution": (
        (("A1", MORE), _row("A1", new=False), ("B1", MORE), _row("B1", new=False)),
        (CREATED[0], _row("A3", new=False), ("A3", MORE), _row("A3", new=False)),
    ),
}


QUICK = {
    "created",
    "created-behind-the-execution",
    "created-new-before-all-others",
    "created-new-at-the-lagging-source",
    "created-older-than-the-target",
    "created-new-and-changed-back",
    "created-older-and-with-another-comment",
    "created-like-what-others-get-in-steps",
    "a-key-behind-the-execution",
    "a-column-that-came-and-went",
}


def _each(quick: set[str]) -> pytest.MarkDecorator:
    """Every story; all but these are slow tests."""
    slow = pytest.mark.slow
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=() if name in quick else slow) for name in STORIES]
    )


def _tell(estate: ShardedEstate, story: Story) -> None:
    for shard, sql in story:
        if sql.startswith(("CREATE TABLE", "RENAME")):
            estate.shards = [*{*estate.shards, "A4" if sql.startswith("RENAME") else shard}]
        if sql.startswith(("DROP", "RENAME")):
            estate.shards.remove(shard)
        names = {name: estate.name(name) for name in ("A1", "A4")}
        estate.run(shard, sql.format(t="{t}", k=estate.key(), **names))


@_each(QUICK)
async def test_a_shard_is_created_while_a_lock_is_open(
    mariadb_estate: ShardedEstate, name: str
) -> None:
    estate = mariadb_estate
    estate.create("A1", "B1", table=OLD)
    async with estate.merging():
        for part in STORIES[name]:
            _tell(estate, part)
            await estate.caught_up()
        await estate.settled()


@_each({"created-like-what-others-get-in-steps", "created-older-than-the-target"})
async def test_it_is_read_again_from_each_point(mariadb_estate: ShardedEstate, name: str) -> None:
    """The task is stopped and started between the parts of the story."""
    estate = mariadb_estate
    estate.create("A1", "B1", table=OLD)
    for part in STORIES[name]:
        async with estate.merging():
            _tell(estate, part)
            await estate.caught_up()
    async with estate.merging():
        await estate.settled()


async def test_shards_write_a_change_in_their_own_ways(mariadb_estate: ShardedEstate) -> None:
    estate = mariadb_estate
    estate.create("A1", "B1", table="(id INT PRIMARY KEY, v INT)")
    async with estate.merging():
        estate.run("A1", "CREATE INDEX k ON {t} (v)")
        estate.ddl("A1", "ADD COLUMN c INT", "CHANGE COLUMN v v BIGINT", "DROP INDEX k")
        estate.insert("A1", f"{estate.key()}, 1, 2")
        estate.ddl("B1", "ADD KEY k (v)", "ADD c INT", "MODIFY v BIGINT")
        estate.run("B1", "DROP INDEX k ON {t}")
        estate.insert("B1", f"{estate.key()}, 1, 2")
        await estate.settled()


async def test_a_created_shard_shows_what_others_get_later(mariadb_estate: ShardedEstate) -> None:
    estate = mariadb_estate
    estate.create("A1", "B1", table="(id INT PRIMARY KEY, v INT, c INT NOT NULL DEFAULT 1)")
    async with estate.merging():
        columns = "id INT PRIMARY KEY, v INT, c INT NOT NULL DEFAULT 2"
        estate.run("A2", f"CREATE TABLE {{t}} ({columns}, KEY k (v)) COMMENT='x'")
        estate.shards.append("A2")
        estate.insert("A2", f"{estate.key()}, 1, 2")
        for shard in ("A1", "B1"):
            estate.ddl(shard, "MODIFY c INT NOT NULL DEFAULT 2", "ADD KEY k (v)", "COMMENT='x'")
            estate.insert(shard, f"{estate.key()}, 1, 2")
            await estate.caught_up()
        await estate.settled()
        for shard in ("A1", "A2", "B1"):
            estate.ddl(shard, "DROP KEY k", "ADD d INT")
            estate.insert(shard, f"{estate.key()}, 1, 2, 3")
        await estate.settled()
    async with estate.merging():
        estate.insert("A2", f"{estate.key()}, 1, 2, 3")
        await estate.settled()
