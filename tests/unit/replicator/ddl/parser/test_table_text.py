"""Typed definitions from texts of SHOW CREATE TABLE, without a server."""

from __future__ import annotations

import pytest

from replicator.ddl.model.table import (
    CheckDefinition,
    ColumnDefault,
    DefaultKind,
    GeneratedAs,
    IndexPart,
    KeyDefinition,
    KeyKind,
)
from replicator.ddl.parser.table_text import table_definition
from replicator.ddl.parser.tokens import tokenise
from replicator.ddl.rewrite.table_sql import create_table_sql
from replicator.mysql.names import TableName
from tests.support.values.definitions import words_of

MYSQL = r"""CREATE TABLE `t` (
  `id` int NOT NULL AUTO_INCREMENT,
  `a` varchar(20) CHARACTER SET latin1 COLLATE latin1_bin DEFAULT 'b, ''(' COMMENT 'it''s \\ c',
  `at` timestamp(3) NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
  `g` int GENERATED ALWAYS AS ((`id` + 1)) STORED NOT NULL,
  `e` char(36) DEFAULT (uuid()),
  `w` int DEFAULT '7' /*!80023 INVISIBLE */,
  `p` point NOT NULL /*!80003 SRID 4326 */,
  PRIMARY KEY (`id`),
  UNIQUE KEY `u` (`a`(7) DESC,(lower(`a`))) USING BTREE COMMENT 'k' /*!80000 INVISIBLE */,
  FULLTEXT KEY `f` (`a`) /*!50100 WITH PARSER `ngram` */ ,
  CONSTRAINT `fk` FOREIGN KEY (`w`) REFERENCES `x`.`p` (`id`) ON DELETE SET NULL ON UPDATE CASCADE,
  CONSTRAINT `c` CHECK ((`w` > 0)) /*!80016 NOT ENFORCED */
) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci COMMENT='x=(y)'
/*!50100 PARTITION BY RANGE (`id`)
(PARTITION p0 VALUES LESS THAN (10) ENGINE = InnoDB,
 PARTITION p1 VALUES LESS THAN MAXVALUE ENGINE = InnoDB) */"""
MARIADB = """CREATE TABLE `t` (
  `a` int(11) NOT NULL CHECK (`a` > 1),
  `z` varchar(200) /*M!100301 COMPRESSED*/ DEFAULT NULL,
  `s` timestamp(6) GENERATED ALWAYS AS ROW START,
  `e` timestamp(6) GENERATED ALWAYS AS ROW END INVISIBLE,
  `d` date NOT NULL,
  `f` date NOT NULL DEFAULT curdate(),
  UNIQUE KEY `o` (`a`,`stay` WITHOUT OVERLAPS),
  KEY `i` (`z`(10)) IGNORED,
  PERIOD FOR SYSTEM_TIME (`s`, `e`),
  PERIOD FOR `stay` (`d`, `f`)
) ENGINE=InnoDB DEFAULT CHARSET=latin1 `PAGE_COMPRESSED`='ON' WITH SYSTEM VERSIONING
 PARTITION BY SYSTEM_TIME LIMIT 10
(PARTITION `p0` HISTORY ENGINE = InnoDB,
 PARTITION `pn` CURRENT ENGINE = InnoDB)"""
TIDB = """CREATE TABLE `t` (
  `id` bigint(20) NOT NULL /*T![auto_rand] AUTO_RANDOM(5) */,
  `at` datetime DEFAULT NULL,
  PRIMARY KEY (`id`) /*T![clustered_index] CLUSTERED */
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 /*T! SHARD_ROW_ID_BITS=4 */ /*T![placement] PLACEMENT \
POLICY=`p` */ /*T![ttl] TTL=`at` + INTERVAL 3 DAY */ /*T![ttl] TTL_ENABLE='OFF' */"""
TEXTS = {"mysql": MYSQL, "mariadb": MARIADB, "tidb": TIDB}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_clause_is_known(text: str) -> None:
    table = table_definition(text)
    assert list(table.all_unknown) == []
    assert table_definition(create_table_sql(TableName("s", "t"), table)) == table


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_word_that_is_not_known_is_kept(text: str) -> None:
    """Whichever word comes before it: it is in a part of the definition, and is written again."""
    for token in tokenise(text, tidb_comments=True)[3:]:
        changed = f"{text[: token.end]} zzz {text[token.end :]}"
        written = create_table_sql(TableName("s", "t"), table_definition(changed))
        lost = words_of(changed) - words_of(written)
        assert not lost, f"{lost} lost behind {token.text} at {token.start}: {written}"


def test_columns_of_mysql() -> None:
    columns = {column.name: column for column in table_definition(MYSQL).columns}
    assert columns["id"].auto_increment
    assert not columns["id"].nullable
    assert (columns["a"].charset, columns["a"].collation) == ("latin1", "latin1_bin")
    assert columns["a"].default == ColumnDefault(DefaultKind.LITERAL, "'b, ''('")
    assert columns["a"].comment == r"'it''s \\ c'"
    assert columns["at"].default == ColumnDefault(DefaultKind.NOW, "CURRENT_TIMESTAMP(3)")
    assert columns["at"].on_update == "CURRENT_TIMESTAMP(3)"
    assert columns["g"].generated == GeneratedAs("((`id` + 1))", "STORED")
    assert columns["e"].default == ColumnDefault(DefaultKind.EXPRESSION, "(uuid())")
    assert columns["w"].invisible
    assert columns["p"].attributes == ("SRID 4326",)


def test_keys_and_constraints_of_mysql() -> None:
    table = table_definition(MYSQL)
    assert table.keys[0] == KeyDefinition(KeyKind.PRIMARY, "", (IndexPart("id"),))
    parts = IndexPart("a", prefix=7, descending=True), IndexPart(expression="(lower(`a`))")
    unique = KeyDefinition(KeyKind.UNIQUE, "u", parts, "BTREE", "'k'", "INVISIBLE")
    assert table.keys[1] == unique
    assert table.keys[2].attributes == ("WITH PARSER `ngram`",)
    (foreign,) = table.foreign_keys
    assert (foreign.parent_schema, foreign.parent, foreign.columns) == ("x", "p", ("w",))
    assert (foreign.on_delete, foreign.on_update) == ("SET NULL", "CASCADE")
    assert table.checks == (CheckDefinition("c", "((`w` > 0))", enforced=False),)
    assert table.option("ENGINE") == "InnoDB"
    assert table.option("COMMENT") == "'x=(y)'"
    assert table.partitioning is not None
    assert table.partitioning.by == "RANGE (`id`)"
    assert [part.name for part in table.partitioning.partitions] == ["p0", "p1"]


def test_what_only_mariadb_has() -> None:
    table = table_definition(MARIADB)
    assert table.columns[0].check == CheckDefinition("", "(`a` > 1)")
    assert table.columns[1].attributes == ("COMPRESSED",)
    assert table.columns[2].generated == GeneratedAs("ROW START", "")
    assert table.columns[5].default == ColumnDefault(DefaultKind.EXPRESSION, "curdate()")
    assert table.keys[0].parts[1] == IndexPart("stay", overlaps=False)
    assert table.keys[1].invisible == "IGNORED"
    assert table.versioned
    assert [period.name for period in table.periods] == ["SYSTEM_TIME", "stay"]


def test_what_only_tidb_has() -> None:
    table = table_definition(TIDB)
    assert table.columns[0].attributes == ("AUTO_RANDOM(5)",)
    assert table.keys[0].attributes == ("CLUSTERED",)
    assert table.option("TTL") == "`at` + INTERVAL 3 DAY"
    assert table.option("PLACEMENT POLICY") == "`p`"


def test_another_statement_is_unknown_as_a_whole() -> None:
    assert table_definition("CREATE VIEW `v` AS select 1").unknown == (
        "CREATE VIEW `v` AS select 1",
    )


@pytest.mark.parametrize("name", ["s1", "with (", "a``b"])
@pytest.mark.parametrize("counter", ["5", "1234567"])
def test_shards_with_other_names_and_counters_share_their_definition(
    name: str, counter: str
) -> None:
    text = MYSQL.replace("TABLE `t`", f"TABLE `{name}`").replace("MENT=5", f"MENT={counter}")
    found, first = table_definition(text), table_definition(MYSQL)
    assert found.option("AUTO_INCREMENT") == counter
    assert found.with_option("AUTO_INCREMENT", "5") == first
    assert found.columns is first.columns


@pytest.mark.parametrize("own", ["", " AUTO_INCREMENT=3"])
def test_a_comment_like_the_line_of_a_counter_is_kept(own: str) -> None:
    comment = "'x\n) ENGINE=a AUTO_INCREMENT=7'"
    text = f"CREATE TABLE `t` (\n  `a` int COMMENT {comment}\n) ENGINE=InnoDB{own}"
    found = table_definition(text)
    assert found.columns[0].comment == comment
    assert found.option("AUTO_INCREMENT") == own[-1:]
