"""The typed actions of ALTER TABLE: what each clause is, and that none of its words is lost."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import expressions as kinds
from sqlglot.errors import SqlglotError

from replicator.ddl.model.actions import (
    Action,
    AddColumn,
    AddConstraint,
    AddKey,
    ColumnPlace,
    Convert,
    DropColumn,
    DropConstraint,
    DropKey,
    EnforceCheck,
    Execution,
    HideKey,
    Redefine,
    RenameColumn,
    RenameKey,
    RenameTable,
    Repartition,
    SetDefault,
    SetOption,
    Unknown,
    Versioning,
)
from replicator.ddl.model.table import KeyKind
from replicator.ddl.parser.alter_actions import alter_actions
from replicator.ddl.parser.alter_parser import typed_actions
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.parser.tokens import tokenise

SHAPES: dict[str, list[type]] = {
    "ADD c INT": [AddColumn],
    "ADD COLUMN c VARCHAR(9) NOT NULL DEFAULT 'a, b' COMMENT 'x' AFTER `b``c`": [AddColumn],
    "ADD COLUMN IF NOT EXISTS c INT UNSIGNED FIRST": [AddColumn],
    "ADD (c INT, d ENUM('a','b'), KEY k (c))": [AddColumn, AddColumn, AddKey],
    "ADD COLUMN (c INT NOT NULL, d INT)": [AddColumn, AddColumn],
    "ADD id INT AUTO_INCREMENT PRIMARY KEY FIRST": [AddColumn],
    "ADD id SERIAL": [AddColumn],
    "ADD vector INT": [AddColumn],
    "ADD system INT": [AddColumn],
    "ADD p INT REFERENCES q (id) ON DELETE CASCADE COMMENT 'x'": [AddColumn],
    "ADD c INT AS (a + 1) STORED, ADD d INT GENERATED ALWAYS AS (a) VIRTUAL": [AddColumn] * 2,
    "ADD c TEXT CHARACTER SET latin1 COLLATE latin1_bin": [AddColumn],
    "MODIFY c BIGINT NOT NULL AUTO_INCREMENT": [Redefine],
    "MODIFY COLUMN IF EXISTS c TIMESTAMP NOT NULL DEFAULT NOW() ON UPDATE NOW() FIRST": [Redefine],
    "CHANGE a b INT": [Redefine],
    "CHANGE COLUMN `a` `b` DECIMAL(9, 2) UNSIGNED AFTER c, DROP d": [Redefine, DropColumn],
    "DROP c, DROP COLUMN d, DROP COLUMN IF EXISTS e RESTRICT": [DropColumn] * 3,
    "RENAME COLUMN a TO b, RENAME COLUMN b TO a": [RenameColumn] * 2,
    "ALTER c SET DEFAULT 5, ALTER COLUMN d DROP DEFAULT": [SetDefault] * 2,
    "ALTER c SET DEFAULT (UUID())": [SetDefault],
    "ADD INDEX (a), ADD KEY k (a(3) DESC, b) USING BTREE COMMENT 'k'": [AddKey] * 2,
    "ADD UNIQUE u (a), ADD UNIQUE KEY (b), ADD CONSTRAINT x UNIQUE (c)": [AddKey] * 3,
    "ADD PRIMARY KEY (a, b), ADD CONSTRAINT PRIMARY KEY (a)": [AddKey] * 2,
    "ADD FULLTEXT KEY f (a) WITH PARSER ngram, ADD SPATIAL INDEX s (p)": [AddKey] * 2,
    "ADD INDEX IF NOT EXISTS i (a), ADD KEY e ((a + 1))": [AddKey] * 2,
    "DROP INDEX i, DROP KEY IF EXISTS k, DROP PRIMARY KEY": [DropKey] * 3,
    "RENAME INDEX a TO b, RENAME KEY b TO c": [RenameKey] * 2,
    "ALTER INDEX i INVISIBLE, ALTER KEY k NOT IGNORED": [HideKey] * 2,
    "ADD FOREIGN KEY (a) REFERENCES p (id)": [AddConstraint],
    "ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES s.p (id) ON DELETE SET NULL": [AddConstraint],
    "ADD CHECK (a > 0), ADD CONSTRAINT c CHECK (a <> 1) NOT ENFORCED": [AddConstraint] * 2,
    "ADD PERIOD FOR p (a, b), DROP PERIOD FOR p": [AddConstraint, DropConstraint],
    "DROP FOREIGN KEY f, DROP CONSTRAINT c, DROP CHECK d": [DropConstraint] * 3,
    "ALTER CHECK c NOT ENFORCED, ALTER CONSTRAINT d ENFORCED": [EnforceCheck] * 2,
    "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin": [Convert],
    "CONVERT TO CHARSET utf8mb4, ENGINE InnoDB": [Convert, SetOption],
    "ENGINE=InnoDB ROW_FORMAT = DYNAMIC, COMMENT 'a, b'": [SetOption] * 3,
    "DEFAULT CHARACTER SET latin1 COLLATE latin1_bin": [SetOption] * 2,
    "AUTO_INCREMENT 5, STATS_PERSISTENT=DEFAULT, `PAGE_COMPRESSED`=1": [SetOption] * 3,
    "RENAME TO b, ADD c INT": [RenameTable, AddColumn],
    "RENAME s.b": [RenameTable],
    "RENAME AS b": [RenameTable],
    "DISABLE KEYS": [Execution],
    "FORCE, ALGORITHM=INPLACE, LOCK NONE": [Execution] * 3,
    "WAIT 5 ADD c INT, ORDER BY a DESC, b": [Execution, AddColumn, Execution],
    "ADD SYSTEM VERSIONING, DROP SYSTEM VERSIONING": [Versioning] * 2,
    "ADD PARTITION (PARTITION p VALUES LESS THAN (9), PARTITION q VALUES LESS THAN (19))": [
        Repartition
    ],
    "DROP PARTITION p, q": [Repartition],
    "ADD c INT, PARTITION BY HASH (id) PARTITIONS 3": [AddColumn, Repartition],
    "ENGINE=InnoDB PARTITION BY KEY ()": [SetOption, Repartition],
    "EXCHANGE PARTITION p WITH TABLE q WITHOUT VALIDATION": [Repartition],
    "REMOVE PARTITIONING": [Repartition],
    "DISCARD TABLESPACE": [Repartition],
    "/*!50100 ADD c INT */": [AddColumn],
    "NONSENSE 5": [Unknown],
    "DROP c d": [Unknown],
}


def actions_of(clauses: str) -> tuple[Action, ...]:
    return typed_actions(classify(f"ALTER TABLE t {clauses}", default_schema="s"))


@pytest.mark.parametrize(("clauses", "expected"), SHAPES.items(), ids=list(SHAPES))
def test_each_clause_is_an_action(clauses: str, expected: list[type]) -> None:
    assert [type(action) for action in actions_of(clauses)] == expected


@pytest.mark.parametrize("clauses", SHAPES)
def test_every_word_belongs_to_an_action(clauses: str) -> None:
    """The texts of the actions are the statement, up to commas and the brackets of a list."""
    statement = classify(f"ALTER TABLE t {clauses}", default_schema="s")
    words = [token.text for piece in alter_actions(statement) for token in piece]
    texts = [t.text for action in actions_of(clauses) for t in tokenise(action.text)]
    listed = clauses.startswith(("ADD (", "ADD COLUMN ("))
    left_out = {",", "ADD", "COLUMN", "(", ")"} if listed else {","}
    assert [t for t in texts if t not in left_out] == [w for w in words if w not in left_out]


@pytest.mark.parametrize("clauses", SHAPES)
def test_a_word_that_is_not_known_is_seen(clauses: str) -> None:
    """Wherever it is: in an action that is not known, in a part that is not known, or as a name."""
    for token in tokenise(clauses):
        changed = f"{clauses[: token.end]} zzz {clauses[token.end :]}"
        found = actions_of(changed)
        fields = [repr(action).replace(repr(action.text), "") for action in found]
        whole = any(isinstance(action, Unknown | Repartition | Execution) for action in found)
        # No server keeps the name of a primary key. A statement that is none is stopped before.
        assert (
            whole
            or not found
            or "zzz  PRIMARY" in changed
            or any("zzz" in text.lower() for text in fields)
        ), changed


def test_what_actions_have() -> None:
    (change,) = actions_of("CHANGE COLUMN IF EXISTS a `b c` INT NOT NULL AFTER d")
    assert isinstance(change, Redefine)
    assert (change.former, change.column.name, change.if_there) == ("a", "b c", True)
    assert change.place == ColumnPlace("d")
    assert not change.column.nullable
    (key,) = actions_of("ADD CONSTRAINT x UNIQUE (a(3))")
    assert isinstance(key, AddKey)
    assert (key.key.kind, key.key.name, key.key.parts[0].prefix) == (KeyKind.UNIQUE, "x", 3)
    (rename,) = actions_of("RENAME TO s2.b")
    assert isinstance(rename, RenameTable)
    assert (rename.schema, rename.name) == ("s2", "b")
    (converted,) = actions_of("CONVERT TO CHARACTER SET utf8 COLLATE utf8_bin")
    assert isinstance(converted, Convert)
    assert (converted.charset, converted.collation) == ("utf8", "utf8_bin")


@pytest.mark.parametrize("clauses", SHAPES)
def test_another_parser_finds_as_many_columns_and_keys(clauses: str) -> None:
    """Where it understands the whole statement, which it does for most of the shapes."""
    try:
        tree = sqlglot.parse_one(f"ALTER TABLE t {clauses}", read="mysql")
    except SqlglotError:
        return
    if not isinstance(tree, kinds.Alter):
        return
    theirs = [node for node in tree.args["actions"] if isinstance(node, kinds.ColumnDef)]
    ours = [action for action in actions_of(clauses) if isinstance(action, AddColumn)]
    assert [node.name for node in theirs] == [action.column.name for action in ours]
