"""Which keys, constraints and comment a shard had before statements that its target lacks."""

from __future__ import annotations

import pytest

from replicator.ddl.model.actions import Action
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.parser.table_text import table_definition
from replicator.mysql.names import TableName
from replicator.schema.registry.former_parts import with_former_parts
from replicator.schema.registry.past_changes import past_changes
from replicator.schema.structure.structure import Column, Table, UniqueKey

COLUMNS = (Column("id", "int(11)", nullable=False), Column("v", "int(11)"))


def table(name: str, parts: str, options: str = "", *keys: UniqueKey) -> Table:
    text = f"CREATE TABLE `{name}` (\n  `id` int(11) NOT NULL,\n  `v` int(11)"
    text += "".join(f",\n  {part}" for part in parts.split("; ") if part)
    return Table("d", name, COLUMNS, keys, f"{text}\n) ENGINE=InnoDB{options}")


def actions(*statements: str) -> tuple[Action, ...]:
    parsed = [classify(sql, default_schema="d") for sql in statements]
    return tuple(a for one in parsed for change in past_changes(one, 7) for a in change.actions)


def parts_of(found: Table) -> set[str]:
    made = found.definition
    return {str(part) for part in (*made.keys, *made.foreign_keys, *made.checks, *made.options)}


@pytest.mark.parametrize(
    ("now", "target", "statement"),
    [
        ("", "KEY `j` (`v`)", "ALTER TABLE s DROP INDEX IF EXISTS j"),
        ("", "KEY `j` (`v`)", "DROP INDEX J ON s"),
        ("KEY `j` (`v`)", "", "CREATE INDEX IF NOT EXISTS j ON s (v)"),
        ("KEY `v` (`v`)", "", "ALTER TABLE s ADD INDEX (V)"),
        ("KEY `i` (`v`)", "KEY `j` (`v`)", "ALTER TABLE s RENAME INDEX j TO i"),
        ("KEY `j` (`v`,`id`)", "KEY `j` (`v`)", "ALTER TABLE s DROP KEY j, ADD KEY j (v, id)"),
        ("KEY `j` (`v`) IGNORED", "KEY `j` (`v`)", "ALTER TABLE s ALTER INDEX j IGNORED"),
        ("", "PRIMARY KEY (`id`)", "ALTER TABLE s DROP PRIMARY KEY"),
        ("PRIMARY KEY (`id`)", "", "ALTER TABLE s ADD PRIMARY KEY (id)"),
        ("CONSTRAINT `c` CHECK (`v` > 0)", "", "ALTER TABLE s ADD CONSTRAINT c CHECK (v > 0)"),
        ("CONSTRAINT `x` CHECK (`v` > 0)", "", "ALTER TABLE s ADD CHECK (v > 0)"),
        ("", "CONSTRAINT `c` CHECK (`v` > 0)", "ALTER TABLE s DROP CONSTRAINT IF EXISTS c"),
        ("", "UNIQUE KEY `j` (`v`)", "ALTER TABLE s DROP CONSTRAINT j"),
    ],
)
def test_a_concerned_part_is_as_the_target_has_it(now: str, target: str, statement: str) -> None:
    others = "KEY `kept` (`id`,`v`)"
    own = table("s", "; ".join(filter(None, [now, others])))
    found = with_former_parts(own, table("t", target), (), actions(statement), {})
    assert parts_of(found) == parts_of(table("s", "; ".join(filter(None, [target, others]))))
    assert found.columns == own.columns
    assert [key.columns for key in found.keys] == [
        tuple(part.column for part in key.parts) for key in found.definition.keys if key.unique
    ]


def test_other_parts_of_the_target_are_not_taken() -> None:
    own, target = table("s", "KEY `j` (`v`)"), table("t", "KEY `k` (`id`)", " COMMENT='x'")
    gone = actions("ALTER TABLE s ADD KEY j (v)")
    assert parts_of(with_former_parts(own, target, (), gone, {})) == parts_of(table("s", ""))
    alike = actions("ALTER TABLE s DROP KEY i, ADD FOREIGN KEY f (v) REFERENCES p (id)")
    assert with_former_parts(own, target, (), alike, {}) is own


def test_the_comment() -> None:
    own, target = table("s", "", " COMMENT='y'"), table("t", "", " COMMENT='x'")
    found = with_former_parts(own, target, (), actions("ALTER TABLE s COMMENT 'y'"), {})
    assert found.definition.option("COMMENT") == "'x'"
    assert found.create_sql.startswith("CREATE TABLE `s` (")
    plain = with_former_parts(own, table("t", ""), (), actions("ALTER TABLE s COMMENT 'y'"), {})
    assert plain.definition.option("COMMENT") == ""


def test_a_foreign_key_refers_to_the_shard_of_its_parent() -> None:
    key = "CONSTRAINT `{}` FOREIGN KEY (`v`) REFERENCES `{}` (`id`)"
    own, target = table("s", ""), table("t", key.format("t_ibfk_1", "p"))
    dropped = actions("ALTER TABLE s DROP FOREIGN KEY s_ibfk_1")
    parents = {TableName("d", "p"): TableName("e", "p1")}
    [found] = with_former_parts(own, target, (), dropped, parents).definition.foreign_keys
    assert (found.parent_schema, found.parent) == ("e", "p1")
    [found] = with_former_parts(own, target, (), dropped, {}).definition.foreign_keys
    assert (found.parent_schema, found.parent) == ("", "p")


def test_a_key_has_only_columns_of_the_shard() -> None:
    own = table("s", "PRIMARY KEY (`id`,`v`)")
    target = table("t", "PRIMARY KEY (`id`,`shard`); KEY `j` (`shard`)")
    changed = actions("ALTER TABLE s DROP PRIMARY KEY, ADD PRIMARY KEY (id, v), DROP KEY j")
    found = with_former_parts(own, target, (), changed, {})
    assert (
        table_definition(found.create_sql).keys == table("s", "PRIMARY KEY (`id`)").definition.keys
    )
    assert found.keys == (UniqueKey("PRIMARY", ("id",)),)


@pytest.mark.parametrize(
    ("earlier", "later", "then"),
    [
        ("ALTER TABLE s ADD KEY i (v), ADD c INT", "ALTER TABLE s DROP KEY i", "KEY `i` (`v`)"),
        ("CREATE INDEX i ON s (v)", "DROP INDEX IF EXISTS i ON s", "KEY `i` (`v`)"),
        ("ALTER TABLE s RENAME KEY j TO i", "ALTER TABLE s DROP KEY i", "KEY `i` (`id`)"),
        ("ALTER TABLE s DROP KEY j", "ALTER TABLE s ADD KEY IF NOT EXISTS j (id)", ""),
        ("ALTER TABLE s ADD KEY IF NOT EXISTS j (v)", "DROP INDEX j ON s", "KEY `j` (`id`)"),
        (
            "ALTER TABLE s ADD CONSTRAINT c CHECK (v > 0)",
            "ALTER TABLE s DROP CONSTRAINT IF EXISTS c",
            "CONSTRAINT `c` CHECK (v > 0)",
        ),
    ],
)
def test_parts_between_two_statements(earlier: str, later: str, then: str) -> None:
    own, target = table("s", ""), table("t", "KEY `j` (`id`)")
    found = with_former_parts(own, target, actions(earlier), actions(later), {})
    assert {p for p in parts_of(found) if "option" not in p.lower()} == {
        p for p in parts_of(table("s", then)) if "option" not in p.lower()
    }


def test_the_comment_between_two_statements() -> None:
    own, target = table("s", "", " COMMENT='z'"), table("t", "")
    first, second = (actions(f"ALTER TABLE s COMMENT '{text}'") for text in "yz")
    assert with_former_parts(own, target, first, second, {}).definition.option("COMMENT") == "'y'"
