"""Tables that shards have changed between the position from which the task starts and its start.

A server shows only its present structures, so the task infers the former ones. A wrong inference
would leave the target with another structure than its shards, which no row shows.
"""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path

import pytest
from pyspark import SparkContext

from replicator.ddl.parser.table_text import table_definition
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles

PLAIN = "(id INT PRIMARY KEY, v INT NOT NULL, w INT)"
KEYED = "(id INT PRIMARY KEY, v INT NOT NULL, w INT, KEY j (v))"
UNIQUE = "(id INT PRIMARY KEY, v INT NOT NULL, w INT, UNIQUE KEY j (v))"
CHECKED = "(id INT PRIMARY KEY, v INT NOT NULL, w INT, CONSTRAINT c CHECK (v > 0))"
KEYLESS = "(id INT NOT NULL, v INT NOT NULL, w INT)"
CHILD = (
    "(id INT PRIMARY KEY, v INT NOT NULL, w INT, KEY j (v),"
    " CONSTRAINT {f} FOREIGN KEY (v) REFERENCES {p} (id))"
)
FOREIGN = "FOREIGN KEY (v) REFERENCES {p} (id)"

CHANGES: tuple[tuple[str, str], ...] = (
    (PLAIN, "ALTER TABLE {t} COMMENT 'x'"),
    (PLAIN, "ALTER TABLE {t} ADD INDEX i (v)"),
    (PLAIN, "ALTER TABLE {t} ADD INDEX (v)"),
    (PLAIN, "ALTER TABLE {t} ADD INDEX IF NOT EXISTS i (v)"),
    (PLAIN, "CREATE INDEX i ON {t} (v)"),
    (PLAIN, "CREATE INDEX IF NOT EXISTS i ON {t} (v)"),
    (PLAIN, "ALTER TABLE {t} ADD UNIQUE KEY i (v)"),
    (PLAIN, "CREATE UNIQUE INDEX i ON {t} (v)"),
    (KEYED, "ALTER TABLE {t} DROP INDEX j"),
    (KEYED, "ALTER TABLE {t} DROP INDEX IF EXISTS j"),
    (KEYED, "DROP INDEX j ON {t}"),
    (KEYED, "DROP INDEX IF EXISTS j ON {t}"),
    (UNIQUE, "ALTER TABLE {t} DROP INDEX j"),
    (KEYED, "ALTER TABLE {t} RENAME INDEX j TO i"),
    (KEYED, "ALTER TABLE {t} DROP INDEX j, ADD INDEX j (v, id)"),
    (KEYED, "ALTER TABLE {t} DROP INDEX j, ADD INDEX i (w), COMMENT 'x'"),
    (PLAIN, "ALTER TABLE {t} DROP PRIMARY KEY"),
    (KEYLESS, "ALTER TABLE {t} ADD PRIMARY KEY (id)"),
    (PLAIN, "ALTER TABLE {t} DROP PRIMARY KEY, ADD PRIMARY KEY (id, v)"),
    (PLAIN, "ALTER TABLE {t} ADD CONSTRAINT c CHECK (v > 0)"),
    (PLAIN, "ALTER TABLE {t} ADD CONSTRAINT IF NOT EXISTS c CHECK (v > 0)"),
    (PLAIN, "ALTER TABLE {t} ADD CHECK (v > 0)"),
    (CHECKED, "ALTER TABLE {t} DROP CONSTRAINT c"),
    (CHECKED, "ALTER TABLE {t} DROP CONSTRAINT IF EXISTS c"),
    (PLAIN, "ALTER TABLE {t} ADD CONSTRAINT {f} " + FOREIGN),
    (PLAIN, "ALTER TABLE {t} ADD FOREIGN KEY IF NOT EXISTS {f} (v) REFERENCES {p} (id)"),
    (CHILD, "ALTER TABLE {t} DROP FOREIGN KEY {f}"),
    (CHILD, "ALTER TABLE {t} DROP FOREIGN KEY IF EXISTS {f}"),
    (PLAIN, "ALTER TABLE {t} ENGINE=InnoDB"),
    (KEYED, "ALTER TABLE {t} ALTER INDEX j IGNORED"),
)
COLUMN_CHANGES: tuple[tuple[str, str], ...] = (
    (PLAIN, "ALTER TABLE {t} MODIFY v BIGINT NOT NULL"),
    (PLAIN, "ALTER TABLE {t} MODIFY v INT NOT NULL COMMENT 'x'"),
    (PLAIN, "ALTER TABLE {t} ADD c INT"),
    (PLAIN, "ALTER TABLE {t} DROP w"),
    (PLAIN, "ALTER TABLE {t} CHANGE w x INT"),
    (PLAIN, "ALTER TABLE {t} ALTER v SET DEFAULT 7"),
    (PLAIN, "ALTER TABLE {t} DEFAULT CHARSET utf8mb4"),
    (KEYED, "ALTER TABLE {t} DROP INDEX IF EXISTS j, ADD c INT"),
)
ALL = CHANGES + COLUMN_CHANGES
"""Each kind of change, with the table before it."""


class Changed:
    """Shards of a target for each change, one on each of two servers."""

    def __init__(self, merging: Merging) -> None:
        self.merging = merging
        self._keys = count(1)
        self._changed: set[tuple[str, int]] = set()
        merging.create("p", "(id INT PRIMARY KEY)")
        for number, (table, _) in enumerate(ALL):
            own, target = (table.format(p=parent, f=f"f{number}") for parent in ("p_1", "p"))
            merging.create(f"x{number}_", own, target=target)

    def change(self, *sources: str, changes: int = len(ALL)) -> None:
        """Make the first of the changes on some sources, unless they were made before."""
        for source in sources:
            for number, (_, sql) in enumerate(ALL[:changes]):
                if (source, number) not in self._changed:
                    self._changed.add((source, number))
                    text = sql.format(t=f"x{number}__1", p="p_1", f=f"f{number}")
                    self.merging.on(self.merging.sources[source], text)

    def insert(self) -> None:
        """Give all shards a row."""
        for server in self.merging.sources.values():
            key = next(self._keys)
            tables = [f"x{number}__1" for number in range(len(ALL))]
            rows = [f"INSERT INTO {table} (id, v) VALUES ({key}, {key})" for table in tables]
            self.merging.on(server, f"INSERT INTO p_1 VALUES ({key})", *rows)

    def differences(self) -> dict[str, str]:
        """Return by statement what a target has otherwise than its shards."""
        found = {}
        for number, (_, sql) in enumerate(ALL):
            target = _parts(self.merging, self.merging.target, f"x{number}_", "p")
            for server in self.merging.sources.values():
                own = _parts(self.merging, server, f"x{number}__1", "p_1")
                if own != target:
                    found[sql] = f"only shard: {own - target}, only target: {target - own}"
        return found | self.merging.differences()


def _parts(merging: Merging, server: DatabaseServer, table: str, parent: str) -> set[str]:
    [[_, text]] = merging.on(server, f"SHOW CREATE TABLE {table}")
    text = re.sub(rf"`{parent}`", "`p`", str(text)).replace(table, "t")
    found = table_definition(text)
    options = {o for o in found.options if o.name not in ("ENGINE", "AUTO_INCREMENT")}
    parts = (*found.columns, *found.keys, *found.foreign_keys, *found.checks, *options)
    return {str(part) for part in parts}


@pytest.fixture(params=["pessimistic", "optimistic", ""])
def changed(
    request: pytest.FixtureRequest,
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    mariadb_target: DatabaseServer,
    database_name: str,
    spark: SparkContext,
    tmp_path: Path,
) -> Changed:
    sources = {"a": mariadb_source_full, "b": mariadb_source}
    merging = Merging(spark, tmp_path, sources, mariadb_target, database_name)
    merging.more["shard-mode"] = request.param
    made = Changed(merging)
    # The task file has the present ends of the binlogs as the start.
    assert merging.task
    return made


@pytest.mark.parametrize("way", ["older", "half", "live"])
async def test_the_target_has_the_structure_of_its_shards(changed: Changed, way: str) -> None:
    merging = changed.merging
    changed.insert()
    if way != "live":
        changed.change("a")
    if way == "older":
        # Without row metadata, rows before a change of columns can't be read.
        changed.change("b", changes=len(CHANGES))
    changed.insert()
    async with merging.running() as generation:
        await merging.caught_up(generation)
        changed.change("a", "b")
        changed.insert()
        await merging.caught_up(generation)
        await settles(changed.differences, {})
