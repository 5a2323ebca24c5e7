"""The path of a shard's columns through schema changes of its target."""

from __future__ import annotations

import pytest

from replicator.ddl.parser.statement_kinds import classify
from replicator.schema.effects.column_path import ColumnPath, column_path, dropped_by


@pytest.mark.parametrize(
    ("statements", "path"),
    [
        ([], ()),
        (["ALTER TABLE t ADD c INT, MODIFY a BIGINT, DROP KEY b"], ()),
        (["ALTER TABLE t CHANGE a c BIGINT"], (("a", "c"),)),
        (["ALTER TABLE t CHANGE COLUMN IF EXISTS `A` A INT"], ()),
        (["ALTER TABLE t RENAME COLUMN a TO c"], (("a", "c"),)),
        (["ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a"], (("a", "b"), ("b", "a"))),
        (["ALTER TABLE t DROP a", "ALTER TABLE t ADD a INT"], (("a", ""),)),
        (["ALTER TABLE t DROP COLUMN IF EXISTS a, CHANGE b a INT"], (("a", ""), ("b", "a"))),
        (["ALTER TABLE t CHANGE a c INT", "ALTER TABLE t CHANGE c a INT"], ()),
        (["ALTER TABLE t CHANGE a c INT", "ALTER TABLE t ADD a INT, DROP c"], (("a", ""),)),
        (["ALTER TABLE t RENAME TO u, RENAME KEY a TO b", "CREATE INDEX a ON t (b)"], ()),
        (["ALTER TABLE t DROP FOREIGN KEY a, DROP PRIMARY KEY, DROP CHECK b"], ()),
        (["ALTER TABLE t DROP `key`, DROP PARTITION a"], ()),
    ],
)
def test_the_path_of_two_columns(statements: list[str], path: ColumnPath) -> None:
    parsed = [classify(sql, default_schema="s") for sql in statements]
    assert column_path(["a", "b"], parsed) == path


def test_which_statement_drops_a_column() -> None:
    texts = ["CHANGE a c INT", "ADD a INT", "DROP c, DROP b", "DROP a"]
    parsed = [classify(f"ALTER TABLE t {text}", default_schema="s") for text in texts]
    assert dropped_by(["A", "b", "other"], parsed) == {"a": 2, "b": 2}
