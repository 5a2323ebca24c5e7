"""A charset means in the target what it meant in the session that named it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.merging import Merging

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
