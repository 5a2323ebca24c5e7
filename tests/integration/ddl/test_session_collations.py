"""A charset means in the target what it meant in the session that named it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging

COLLATION = "SELECT TABLE_COLLATION FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()"


@pytest.mark.parametrize(
    ("source", "setting", "expected"),
    [
        ("mysql_source", "default_collation_for_utf8mb4 = utf8mb4_general_ci", "general_ci"),
        ("mariadb11_source", "character_set_collations = 'utf8mb4=utf8mb4_bin'", "bin"),
    ],
    ids=["MySQL", "MariaDB"],
)
async def test_the_default_collation_of_a_charset_is_that_of_the_session(
    merging_from: Callable[..., Merging],
    request: pytest.FixtureRequest,
    source: str,
    setting: str,
    expected: str,
) -> None:
    server: DatabaseServer = request.getfixturevalue(source)
    merging = merging_from(server)
    async with merging.running() as generation:
        merging.do(
            f"SET {setting}",
            "CREATE TABLE made (id INT PRIMARY KEY, v VARCHAR(9)) CHARSET=utf8mb4",
            "INSERT INTO made VALUES (1, 'é')",
        )
        await merging.caught_up(generation)
    assert merging.on(merging.target, COLLATION) == ((f"utf8mb4_{expected}",),)


COLUMNS = (
    "SELECT COLUMN_NAME, COLLATION_NAME FROM information_schema.COLUMNS"
    " WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ('t', 'made') AND"
    " COLLATION_NAME IS NOT NULL ORDER BY TABLE_NAME, COLUMN_NAME"
)


@pytest.mark.parametrize(
    ("source", "setting", "expected"),
    [
        ("mysql_source", "default_collation_for_utf8mb4 = utf8mb4_general_ci", "general_ci"),
        ("mysql_source", "default_collation_for_utf8mb4 = utf8mb4_0900_ai_ci", "nopad_bin"),
        ("mariadb11_source", "character_set_collations = 'utf8mb4=utf8mb4_bin'", "bin"),
    ],
    ids=["MySQL", "MySQL, which the target lacks", "MariaDB"],
)
async def test_a_charset_of_a_column_has_the_collation_that_it_has_at_the_shard(
    merging_from: Callable[..., Merging],
    request: pytest.FixtureRequest,
    source: str,
    setting: str,
    expected: str,
) -> None:
    server: DatabaseServer = request.getfixturevalue(source)
    merging = merging_from(server)
    merging.create("t", "(id INT PRIMARY KEY, o VARCHAR(9) CHARACTER SET latin1) CHARSET=latin1")
    async with merging.running() as generation:
        merging.do(
            f"SET {setting}",
            "CREATE TABLE made (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET utf8mb4 NOT NULL,"
            " w VARCHAR(9) CHARSET utf8mb4 COMMENT 'w' COLLATE utf8mb4_unicode_ci,"
            " x VARCHAR(9) BINARY CHARACTER SET utf8mb4) COLLATE latin1_bin",
            "INSERT INTO made VALUES (1, 'é', 'é', 'é')",
            "ALTER TABLE t_1 ADD c VARCHAR(9) CHARACTER SET utf8mb4, ADD n INT",
            "ALTER TABLE t_1 MODIFY o VARCHAR(9) CHARACTER SET utf8mb4 AFTER c",
            "ALTER TABLE t_1 CONVERT TO CHARACTER SET utf8mb4",
            "INSERT INTO t_1 (id, c, o) VALUES (7, 'é', 'é')",
            "ALTER TABLE made ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
            "ALTER TABLE made ADD y VARCHAR(9)",
        )
        await merging.caught_up(generation)
    utf8 = f"utf8mb4_{expected}"
    found = merging.on(merging.target, COLUMNS)
    assert {str(name): collation for name, collation in found} == {
        "v": utf8,
        "w": "utf8mb4_unicode_ci",
        "x": "utf8mb4_bin",
        "y": utf8,
        "c": utf8,
        "o": utf8,
    }
