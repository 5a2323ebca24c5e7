"""The statement that makes a target's table, from what servers show of a shard's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.ddl.parser.tokens import tokenise
from replicator.ddl.rewrite.target_table import Collations, target_table
from replicator.mysql.names import quote

DEFAULTS = Collations(
    {"latin1": "latin1_swedish_ci", "utf8": "utf8_general_ci", "utf8mb4": "utf8mb4_general_ci"}
)

MYSQL56 = """\
CREATE TABLE `orders_1` (
  `id` bigint(20) unsigned NOT NULL AUTO_INCREMENT,
  `name` varchar(20) CHARACTER SET utf8 DEFAULT NULL COMMENT 'CONSTRAINT FOREIGN KEY, a',
  `FOREIGN KEY` int(11) DEFAULT NULL,
  `kind` enum('a,b','AUTO_INCREMENT)') COLLATE latin1_bin DEFAULT 'a,b',
  PRIMARY KEY (`id`),
  KEY `customer` (`FOREIGN KEY`),
  CONSTRAINT `orders_1_ibfk_1` FOREIGN KEY (`FOREIGN KEY`) REFERENCES `customers` (`id`) ON DELETE \
SET NULL
) ENGINE=InnoDB AUTO_INCREMENT=1007 DEFAULT CHARSET=latin1 COMMENT='AUTO_INCREMENT=5; `x`'"""

MARIADB = """\
CREATE TABLE `orders_1` (
  `id` int(11) NOT NULL AUTO_INCREMENT,
  `doc` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL CHECK (json_valid(`doc`)),
  `parent` int(11) DEFAULT NULL,
  `twice` int(11) GENERATED ALWAYS AS (`id` * 2) STORED,
  PRIMARY KEY (`id`),
  KEY `up` (`parent`),
  CONSTRAINT `up` FOREIGN KEY (`parent`) REFERENCES `orders_1` (`id`),
  CONSTRAINT `other` FOREIGN KEY (`parent`) REFERENCES `else`.`where` (`id`) ON UPDATE CASCADE,
  CONSTRAINT `small` CHECK (`id` < 1000000)
) ENGINE=InnoDB AUTO_INCREMENT=4 DEFAULT CHARSET=latin1 COLLATE=latin1_german1_ci `ENCRYPTED`=NO"""


def made(create_sql: str) -> str:
    return target_table(create_sql, "shop", "orders", DEFAULTS).sql


def test_a_table_of_mysql() -> None:
    found = target_table(MYSQL56, "shop", "orders", DEFAULTS)
    assert found.sql == (
        MYSQL56.replace("TABLE `orders_1`", "TABLE IF NOT EXISTS `shop`.`orders`")
        .replace("CHARACTER SET utf8", "CHARACTER SET utf8 COLLATE utf8_general_ci")
        .replace("DEFAULT CHARSET=latin1", "DEFAULT CHARSET=latin1 COLLATE=latin1_swedish_ci")
        .replace(" AUTO_INCREMENT=1007", "")
        .replace(f",\n  {found.foreign_keys[0]}", "")
    )
    assert found.foreign_keys == (
        "CONSTRAINT `orders_1_ibfk_1` FOREIGN KEY (`FOREIGN KEY`) REFERENCES `customers` (`id`)"
        " ON DELETE SET NULL",
    )
    assert (found.auto_increment, found.engine) == ("id", "")


def test_a_table_of_mariadb() -> None:
    found = target_table(MARIADB, "shop", "orders", DEFAULTS)
    assert len(found.foreign_keys) == 2
    text = MARIADB.replace("TABLE `orders_1`", "TABLE IF NOT EXISTS `shop`.`orders`")
    text = text.replace(" AUTO_INCREMENT=4", "")
    for left_out in found.foreign_keys:
        assert f",\n  {left_out}" in text
        text = text.replace(f",\n  {left_out}", "")
    assert found.sql == text
    assert (found.auto_increment, found.engine) == ("id", "")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 DATA DIRECTORY='/x y/'",
            "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci",
        ),
        (
            "/*!50100 TABLESPACE `own` */ ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_bin",
            "/*!50100 */ ENGINE=InnoDB DEFAULT CHARSET=latin1 COLLATE=latin1_bin",
        ),
        (
            "ENGINE=MyISAM AUTO_INCREMENT=3 DEFAULT CHARSET=koi8r ROW_FORMAT=FIXED CHECKSUM=1",
            "ENGINE=InnoDB DEFAULT CHARSET=koi8r",
        ),
        ("ENGINE=Aria PAGE_CHECKSUM=1 TRANSACTIONAL=1", "ENGINE=InnoDB"),
        ("ENGINE=InnoDB ROW_FORMAT=COMPRESSED", "ENGINE=InnoDB"),
        (
            "ENGINE=InnoDB WITH SYSTEM VERSIONING COMMENT='it''s ENGINE=MyISAM'",
            "ENGINE=InnoDB WITH SYSTEM VERSIONING COMMENT='it''s ENGINE=MyISAM'",
        ),
        (
            "ENGINE=InnoDB\n/*!50100 PARTITION BY HASH (tablespace + auto_increment)\n"
            "(PARTITION p0 DATA DIRECTORY = '/a' INDEX DIRECTORY = '/b' ENGINE = InnoDB) */",
            "ENGINE=InnoDB\n/*!50100 PARTITION BY HASH (tablespace + auto_increment)\n"
            "(PARTITION p0 ENGINE = InnoDB) */",
        ),
        (
            "ENGINE=MyISAM\n PARTITION BY HASH (`engine`)\n"
            "(PARTITION `p0` ENGINE = MyISAM,\n PARTITION `p1` ENGINE = MyISAM)",
            "ENGINE=InnoDB\n PARTITION BY HASH (`engine`)\n"
            "(PARTITION `p0` ENGINE = InnoDB,\n PARTITION `p1` ENGINE = InnoDB)",
        ),
    ],
)
def test_options_of_the_shards_engine_and_place_are_left_out(options: str, expected: str) -> None:
    head = "CREATE TABLE `t` (\n  `engine` int(11) NOT NULL\n) "
    assert made(head + options) == made(head) + expected


def test_the_engine_that_was_replaced_is_told() -> None:
    text = "CREATE TABLE `t` (`a` int) ENGINE=Aria"
    assert target_table(text, "shop", "orders", Collations()).engine == "Aria"


@pytest.mark.parametrize(
    "column",
    [
        "`AUTO_INCREMENT` int",
        "`a` int COMMENT 'AUTO_INCREMENT'",
        "`a` varchar(20) DEFAULT 'x AUTO_INCREMENT'",
    ],
)
def test_columns_that_do_not_count_up(column: str) -> None:
    assert target_table(f"CREATE TABLE `t` ({column})", "s", "t", Collations()).auto_increment == ""


def test_a_charset_inside_an_expression_is_left_alone() -> None:
    text = (
        "CREATE TABLE `t` (`a` int, `b` varchar(9) GENERATED ALWAYS AS"
        " (cast(`a` as char(9) charset utf8)) VIRTUAL)"
    )
    assert "COLLATE" not in made(text)


TIDB = {"latin1_bin", "utf8_bin", "utf8_general_ci", "utf8mb4_bin", "utf8mb4_0900_bin", "binary"}
MARIADB_NAMES = {"latin1_swedish_ci", "utf8mb3_general_ci", "utf8mb3_bin", "utf8mb4_nopad_bin"}


@pytest.mark.parametrize(
    ("available", "column", "expected", "replaced"),
    [
        (TIDB, "CHARACTER SET latin1", "CHARACTER SET latin1 COLLATE latin1_bin", True),
        (TIDB, "COLLATE latin1_german1_ci", "COLLATE latin1_bin", True),
        (TIDB, "CHARACTER SET utf8", "CHARACTER SET utf8 COLLATE utf8_general_ci", False),
        (
            TIDB,
            "CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci",
            "CHARACTER SET utf8 COLLATE utf8_general_ci",
            False,
        ),
        (
            MARIADB_NAMES,
            "CHARACTER SET utf8",
            "CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci",
            False,
        ),
        (
            MARIADB_NAMES,
            "CHARACTER SET utf8 COLLATE utf8_icelandic_ci",
            "CHARACTER SET utf8mb3 COLLATE utf8mb3_bin",
            True,
        ),
        (
            MARIADB_NAMES,
            "CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci",
            "CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin",
            True,
        ),
        (TIDB, "COLLATE utf8mb4_nopad_bin", "COLLATE utf8mb4_0900_bin", True),
        # No collation of that charset: the server says so itself.
        (TIDB, "COLLATE koi8r_general_ci", "COLLATE koi8r_general_ci", False),
        (TIDB, "CHARACTER SET koi8r", "CHARACTER SET koi8r", False),
        (TIDB, "COMMENT 'COLLATE latin1_swedish_ci'", "COMMENT 'COLLATE latin1_swedish_ci'", False),
    ],
)
def test_collations_that_the_target_lacks(
    available: set[str], column: str, expected: str, replaced: bool
) -> None:
    collations = Collations(DEFAULTS.defaults, available)
    text = "CREATE TABLE `t` (`a` varchar(9) {} NOT NULL)"
    found = target_table(text.format(column), "shop", "orders", collations)
    assert found.sql == text.replace("`t`", "IF NOT EXISTS `shop`.`orders`").format(expected)
    assert bool(found.collations) is replaced


def test_collations_of_the_table_and_its_columns_are_told_once() -> None:
    text = (
        "CREATE TABLE `t` (`a` char(1) CHARACTER SET latin1, `b` char(1) COLLATE latin1_swedish_ci)"
        " DEFAULT CHARSET=latin1"
    )
    found = target_table(text, "s", "t", Collations(DEFAULTS.defaults, TIDB))
    assert found.collations == (("latin1_swedish_ci", "latin1_bin"),)
    assert found.sql.endswith("DEFAULT CHARSET=latin1 COLLATE=latin1_bin")


def test_an_unnamed_foreign_key_in_the_middle() -> None:
    text = "CREATE TABLE `t` (`a` int, FOREIGN KEY (`a`) REFERENCES `p` (`a`), KEY `k` (`a`))"
    found = target_table(text, "s", "t", Collations())
    assert found.sql == "CREATE TABLE IF NOT EXISTS `s`.`t` (`a` int, KEY `k` (`a`))"
    assert found.foreign_keys == ("FOREIGN KEY (`a`) REFERENCES `p` (`a`)",)
    text = text.replace("FOREIGN", "CONSTRAINT FOREIGN")
    assert target_table(text, "s", "t", Collations()).sql == found.sql


@pytest.mark.parametrize(
    "text",
    [
        "",
        "CREATE VIEW `v` AS SELECT 1",
        "CREATE TABLE `t` LIKE `u`",
        "CREATE TABLE `t` (`a` int",
        "CREATE TABLE `t` (`a` int) COMMENT='",
        "CREATE TABLE `t` ()",
        "CREATE TABLE `t`",
    ],
)
def test_what_is_no_list_of_columns(text: str) -> None:
    with pytest.raises(ValueError, match=r"CREATE TABLE|list of columns"):
        made(text)


NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
TRICKY = st.sampled_from(
    ["FOREIGN KEY", "AUTO_INCREMENT", "a`b", ") ENGINE=MyISAM (", "/*", "*/", "--", "CONSTRAINT"]
)


def _string(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


@given(
    names=st.lists(NAMES | TRICKY, min_size=1, max_size=4),
    comments=st.lists(NAMES | TRICKY, min_size=4, max_size=4),
    with_key=st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_no_name_or_text_is_taken_for_a_clause(
    names: list[str], comments: list[str], with_key: list[bool]
) -> None:
    """Columns of any name, with any comment: only the foreign keys between them go."""
    items, kept, keys = [], [], []
    for name, comment, keyed in zip(names, comments, with_key, strict=False):
        column = f"{quote(name)} varchar(9) COMMENT {_string(comment)}"
        items.append(column)
        kept.append(column)
        if keyed:
            quoted = quote(name)
            key = f"CONSTRAINT {quoted} FOREIGN KEY ({quoted}) REFERENCES {quoted} ({quoted})"
            items.append(key)
            keys.append(key)
    charset = f" DEFAULT CHARSET=latin1 COLLATE=latin1_bin COMMENT={_string(names[0])}"
    shown = ",\n  ".join(items)
    shown = f"CREATE TABLE `t` (\n  {shown}\n) ENGINE=InnoDB AUTO_INCREMENT=7{charset}"
    found = target_table(shown, "s", names[-1], DEFAULTS)
    wanted = ",\n  ".join(kept)
    name = quote(names[-1])
    wanted = f"CREATE TABLE IF NOT EXISTS `s`.{name} (\n  {wanted}\n) ENGINE=InnoDB{charset}"
    assert found.sql == wanted
    assert found.foreign_keys == tuple(keys)
    assert found.auto_increment == ""
    assert [t.text for t in tokenise(found.sql)] == [t.text for t in tokenise(wanted)]
