"""What tests of whole tasks share: estates of two sources of different kinds."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkContext

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.shard_ddl import ShardedEstate
from tests.support.tasks.shards import Shards

MARIADB = ("mariadb_source", "mariadb_source_full")
MYSQL_FIRST = ("mysql56_source", "mariadb_source")
MYSQL_SECOND = ("mariadb_source_full", "mysql56_source")

CHOSEN_SOURCES = os.environ.get("REPLICATOR_TEST_SOURCES", "")
"""Two fixtures of sources, with a comma between: estates have these, whatever their tests name."""

MakeEstate = Callable[[tuple[str, str]], ShardedEstate]


@pytest.fixture
def shards(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
) -> Shards:
    return Shards([mariadb_source, mariadb_source_full], target_server, database_name)


@pytest.fixture
def estate_of(
    request: pytest.FixtureRequest,
    target_server: DatabaseServer,
    database_name: str,
    spark: SparkContext,
    tmp_path: Path,
) -> MakeEstate:
    """Makes an estate of two sources, A and B, by the names of their fixtures."""

    def make(kinds: tuple[str, str]) -> ShardedEstate:
        names = CHOSEN_SOURCES.split(",") if CHOSEN_SOURCES else kinds
        sources = dict(zip("ab", map(request.getfixturevalue, names), strict=True))
        return ShardedEstate(sources, target_server, database_name, spark, tmp_path)

    return make


@pytest.fixture(
    params=[
        pytest.param(MARIADB, id=" ".join(MARIADB)),
        pytest.param(MYSQL_FIRST, id=" ".join(MYSQL_FIRST), marks=pytest.mark.slow),
        pytest.param(MYSQL_SECOND, id=" ".join(MYSQL_SECOND), marks=pytest.mark.slow),
    ]
)
def estate(request: pytest.FixtureRequest, estate_of: MakeEstate) -> ShardedEstate:
    """Two sources: MariaDB without and with row metadata, and MySQL 5.6 as either of them.

    With MySQL they are slow tests; `mixed_estate` has it in every run.
    """
    return estate_of(request.param)


@pytest.fixture(
    params=[
        pytest.param(MARIADB, id=" ".join(MARIADB)),
        pytest.param(MYSQL_SECOND, id=" ".join(MYSQL_SECOND), marks=pytest.mark.slow),
    ]
)
def optimistic_estate(request: pytest.FixtureRequest, estate_of: MakeEstate) -> ShardedEstate:
    """Two sources whose shards do not wait for each other: MariaDB, and in slow runs MySQL 5.6."""
    made = estate_of(request.param)
    made.mode = "optimistic"
    return made


@pytest.fixture
def mixed_estate(estate_of: MakeEstate) -> ShardedEstate:
    """A is a MariaDB, B a MySQL 5.6."""
    return estate_of(MYSQL_SECOND)


@pytest.fixture
def mariadb_estate(estate_of: MakeEstate) -> ShardedEstate:
    """Both are MariaDB: for statements that MySQL 5.6 does not have."""
    return estate_of(MARIADB)
