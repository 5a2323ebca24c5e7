"""Shards that rename a column when the target has the new name from others already.

The others have dropped their tables since, or have made the column narrower.
"""

from __future__ import annotations

import pytest

from tests.support.tasks.shard_ddl import ShardedEstate

Story = tuple[tuple[str, tuple[str, ...]], ...]
"""The statements of shards in their order; ``{k}`` is a new number."""

CREATE = "CREATE TABLE {t} (id INT PRIMARY KEY, c VARCHAR(9) DEFAULT 'x')"
CREATED = "CREATE TABLE {t} (id INT PRIMARY KEY, d VARCHAR(9) NOT NULL DEFAULT 'z')"
VALUES = "INSERT INTO {t} VALUES ({k}, 'x'), ({k}, 'X'), ({k}, NULL), ({k}, 'y{k}')"
RENAME = "ALTER TABLE {t} CHANGE c d VARCHAR(9) DEFAULT 'x'"
LESS = "ALTER TABLE {t} CHANGE c d VARCHAR(5) DEFAULT 'x'"
LESS_AND_MORE = f"{LESS}, ADD n INT NOT NULL DEFAULT 7, ADD KEY (n)"
SPACES = "INSERT INTO {t} VALUES ({k}, 'y   '), ({k}, '     ')"
ANOTHER = "INSERT INTO {t} VALUES ({k}, {k}), ({k}, 0)"
WITHOUT = ("ALTER TABLE {t} DROP COLUMN d", "INSERT INTO {t} (id) VALUES ({k})")
GO = ("DELETE FROM {t}", "DROP TABLE {t}")
OLD = (CREATE, VALUES)
NEW = (RENAME, VALUES)
MORE = (
    "ALTER TABLE {t} CHANGE c d VARCHAR(9) DEFAULT 'x', ADD n INT NOT NULL DEFAULT 7",
    "INSERT INTO {t} VALUES ({k}, 'X', 1), ({k}, 'x', {k})",
)


def _narrow(kind: str, default: str) -> tuple[str, str]:
    return (
        "UPDATE {t} SET d = 'x' WHERE d IS NULL",
        f"ALTER TABLE {{t}} MODIFY d {kind} NOT NULL {default}",
    )


STORIES: dict[str, Story] = {
    "the-others-are-gone": (
        ("uA1", (*OLD, *NEW)),
        ("uB1", OLD),
        ("uA1", GO),
        ("uB1", NEW),
    ),
    "several-shards-are-left": (
        ("uA1", OLD),
        ("uB1", OLD),
        ("uA1", NEW),
        ("uB1", NEW),
        ("uA2", OLD),
        ("uB2", OLD),
        ("uA1", GO),
        ("uA2", NEW),
        ("uB1", GO),
        ("uB2", NEW),
    ),
    "one-goes-while-another-waits": (
        ("uA1", (*OLD, "ALTER TABLE {t} CHANGE c d VARCHAR(9) DEFAULT 'z'", VALUES)),
        ("uB1", (*OLD, "ALTER TABLE {t} CHANGE c d VARCHAR(9) DEFAULT 'z'", VALUES)),
        ("uA1", GO),
    ),
    "they-were-narrower": (
        ("uA1", (*OLD, *NEW, *_narrow("VARCHAR(9)", "DEFAULT 'x'"))),
        ("uB1", OLD),
        ("uA1", GO),
        ("uB1", NEW),
    ),
    "they-were-wider": (
        ("uA1", (*OLD, *NEW, "ALTER TABLE {t} MODIFY d VARCHAR(20) DEFAULT 'x'")),
        ("uB1", OLD),
        ("uA1", GO),
        ("uB1", (*NEW, "ALTER TABLE {t} MODIFY d VARCHAR(20) DEFAULT 'x'")),
    ),
    "with-less-values": (
        ("uA1", (*OLD, LESS, VALUES)),
        ("uB1", (*OLD, SPACES)),
        ("uA1", GO),
        ("uB1", (LESS, VALUES)),
    ),
    "with-less-values-than-the-others": (
        ("uA1", (*OLD, LESS, VALUES, "ALTER TABLE {t} MODIFY d VARCHAR(20) DEFAULT 'x'")),
        ("uB1", (*OLD, SPACES)),
        ("uB1", (LESS, VALUES, "ALTER TABLE {t} MODIFY d VARCHAR(20) DEFAULT 'x'")),
    ),
    "the-others-have-dropped-it": (
        ("uA1", (*OLD, LESS, *WITHOUT)),
        ("uB1", (*OLD, SPACES)),
        ("uB1", (LESS, VALUES, *WITHOUT)),
    ),
    "the-others-have-dropped-it-and-have-another": (
        ("uA1", (*OLD, LESS_AND_MORE, "ALTER TABLE {t} DROP COLUMN d", ANOTHER)),
        ("uB1", (*OLD, SPACES)),
        ("uB1", (LESS_AND_MORE, "INSERT INTO {t} VALUES ({k}, 'x', {k})")),
        ("uB1", ("ALTER TABLE {t} DROP COLUMN d", ANOTHER)),
    ),
    "with-another-column": (
        ("uA1", (*OLD, *MORE)),
        ("uB1", OLD),
        ("uA1", GO),
        ("uB1", MORE),
    ),
    "the-others-exclude-nulls": (
        ("uA1", (*OLD, *NEW, *_narrow("VARCHAR(9)", "DEFAULT 'x'"))),
        ("uB1", (*OLD, *NEW, *_narrow("VARCHAR(9)", "DEFAULT 'x'"))),
    ),
    "the-others-are-narrower": (
        ("uA1", (*OLD, *NEW, "ALTER TABLE {t} MODIFY d VARCHAR(5) DEFAULT 'x'")),
        ("uB1", (*OLD, *NEW, "ALTER TABLE {t} MODIFY d VARCHAR(5) DEFAULT 'x'")),
    ),
    "the-others-have-another-default": (
        ("uA1", OLD),
        ("uB1", (CREATED, "INSERT INTO {t} VALUES ({k}, 'x'), ({k}, 'z'), ({k}, 'y{k}')")),
        ("uA1", (*NEW, "INSERT INTO {t} VALUES ({k}, 'z')")),
    ),
}
QUICK = {
    ("optimistic", "the-others-exclude-nulls"),
    ("", "the-others-are-gone"),
    ("", "the-others-have-another-default"),
}


@pytest.mark.parametrize(
    ("mode", "name"),
    [
        pytest.param(mode, name, marks=() if (mode, name) in QUICK else pytest.mark.slow)
        for mode in ("optimistic", "")
        for name in STORIES
    ],
)
async def test_a_column_gets_a_name_that_the_target_has(
    mariadb_estate: ShardedEstate, mode: str, name: str
) -> None:
    estate = mariadb_estate
    estate.mode = mode
    estate.create("A1", "B1")
    async with estate.merging():
        for shard, script in STORIES[name]:
            for statement in script:
                keys = [estate.key() for _ in range(statement.count("{k}"))]
                text = statement.replace("{k}", "{}").replace("{t}", "{{t}}").format(*keys)
                estate.run(shard, text)
            if script[0] in (CREATE, CREATED):
                estate.shards.append(shard)
            if script == GO:
                estate.shards.remove(shard)
            await estate.caught_up()
        await estate.settled()


async def test_values_of_a_dropped_shard_are_not_shortened(mariadb_estate: ShardedEstate) -> None:
    """Its rows stay on the target, and the statement of the last shard stays open."""
    estate = mariadb_estate
    estate.mode = "optimistic"
    estate.create("A1", "B1")
    async with estate.merging():
        for statement in (CREATE, LESS, "INSERT INTO {t} VALUES (1, 'short')"):
            estate.run("uA1", statement)
        await estate.caught_up()
        for statement in (CREATE, "INSERT INTO {t} VALUES (2, 'too long')", "DROP TABLE {t}"):
            estate.run("uA2", statement)
        estate.run("uB1", CREATE)
        await estate.caught_up()
        estate.run("uB1", LESS)
        await estate.caught_up()
        assert estate.rows("c", target="u")[b"too long",] == 1
        assert [str(view.target) for view in estate.views()] == [f"{estate.db}.u"]
