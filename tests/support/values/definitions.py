"""Parts of CREATE TABLE, of which tests make definitions; each server takes some of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from replicator.ddl.parser.tokens import tokenise

COLUMNS = (
    "INT",
    "INT(7) UNSIGNED ZEROFILL DEFAULT '17'",
    "TINYINT(1) NOT NULL DEFAULT 0 COMMENT 'on; off, or ''both'''",
    "BOOL",
    "BIGINT UNSIGNED NOT NULL",
    "BIT(9) NOT NULL DEFAULT b'101'",
    "DECIMAL(20,4) NOT NULL DEFAULT '-1.5000'",
    "FLOAT(7,3) UNSIGNED",
    "DOUBLE PRECISION DEFAULT 1e3",
    "REAL",
    "CHAR(3) CHARACTER SET latin1 COLLATE latin1_bin NOT NULL DEFAULT 'a''b'",
    r"VARCHAR(30) CHARACTER SET utf8mb4 DEFAULT 'it\'s \\ (a, b) -- no # comment /* at all */'",
    "VARCHAR(30) BINARY CHARACTER SET utf8mb4",
    "VARCHAR(20) DEFAULT 'one' 'two'",
    "VARCHAR(20) NOT NULL DEFAULT 'ü 😀' COMMENT 'größer\nas before'",
    "NVARCHAR(7)",
    "VARBINARY(16) NOT NULL DEFAULT 'a\\0b'",
    "BINARY(4)",
    "TEXT",
    "TINYTEXT CHARACTER SET latin1",
    "LONGBLOB NOT NULL",
    "LONG VARCHAR",
    "ENUM('a','b,c','d''e',')','') NOT NULL DEFAULT 'b,c'",
    "SET('x','y') CHARACTER SET latin1 DEFAULT 'x,y'",
    "DATE NOT NULL DEFAULT '2020-01-01'",
    "TIME(3) DEFAULT '01:02:03.004'",
    "YEAR DEFAULT 2020",
    "DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)",
    "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP COMMENT 'on update'",
    "TIMESTAMP NULL",
    "TIMESTAMP NULL DEFAULT NULL",
    "TIMESTAMP(2) NOT NULL DEFAULT '2020-01-01 00:00:00.00'",
    "JSON",
    "POINT",
    "GEOMETRY NOT NULL",
    "POINT NOT NULL SRID 4326",
    "POINT NOT NULL REF_SYSTEM_ID = 4326",
    "INT GENERATED ALWAYS AS (`id` + 1) VIRTUAL COMMENT 'id, and 1'",
    "VARCHAR(20) GENERATED ALWAYS AS (CONCAT(`id`, ') VIRTUAL, ''x''')) STORED",
    "INT AS (`id` * 2) STORED NOT NULL",
    "INT AS (`id` * 2) PERSISTENT",
    "INT DEFAULT (1 + 2)",
    "CHAR(36) NOT NULL DEFAULT (UUID())",
    "VARCHAR(36) DEFAULT UUID()",
    "DATETIME DEFAULT (NOW() + INTERVAL 1 DAY)",
    "INT DEFAULT (IF(1 > 2, 3, 4))",
    "TEXT DEFAULT ('a,b')",
    "INT INVISIBLE DEFAULT 4",
    "INT CHECK (`{name}` > 0 AND `{name}` <> 7)",
    "INT COLUMN_FORMAT DYNAMIC STORAGE DISK",
    "VARCHAR(2000) COMPRESSED",
    "VARCHAR(200) COMPRESSED=zlib CHARACTER SET latin1",
    "INET6",
    "INET4",
    "UUID DEFAULT UUID()",
    "VECTOR(3) NOT NULL",
    "INT NOT SECONDARY",
    "INT `quoted`='v'",
    "CHAR(2) COLLATE utf8mb4_bin",
    "INT UNIQUE",
    "INT REFERENCES `{parent}` (id)",
    "BIT(1) DEFAULT 1",
    "INT WITHOUT SYSTEM VERSIONING",
    "INT ENGINE_ATTRIBUTE '{}'",
)
"""Columns without their names. ``{name}`` is the column's own, ``{parent}`` another table."""

PLAIN = ("a INT", "b VARCHAR(40)", "`c d``e,(` INT", "d1 DATE", "d2 DATE")
"""Columns that keys and constraints are made of."""

ITEMS = (
    "KEY (a)",
    "KEY `k-1, ``x``` (`c d``e,(`, b(7) DESC, a ASC)",
    "KEY h (a) USING HASH COMMENT 'a ''key'''",
    "KEY b USING BTREE (a)",
    "UNIQUE KEY u (a, b)",
    "CONSTRAINT named UNIQUE (b(5))",
    "UNIQUE (b) KEY_BLOCK_SIZE=4",
    "FULLTEXT KEY words (b)",
    "FULLTEXT (b) WITH PARSER ngram",
    "p POINT NOT NULL, SPATIAL KEY (p)",
    "KEY e ((a + 1))",
    "UNIQUE KEY e2 ((LOWER(b)), a DESC)",
    "KEY i (a) INVISIBLE",
    "KEY i2 (a) IGNORED",
    "CHECK (a > 0)",
    "CONSTRAINT c1 CHECK (a <> 3 OR b IN ('x, y', ')'))",
    "CONSTRAINT c2 CHECK (a > 2) NOT ENFORCED",
    "FOREIGN KEY (a) REFERENCES `{parent}` (id)",
    "CONSTRAINT `{name}_f` FOREIGN KEY (a) REFERENCES `{parent}` (id)"
    " ON DELETE SET NULL ON UPDATE CASCADE",
    "CONSTRAINT `{name}_g` FOREIGN KEY ix (a) REFERENCES `{parent}` (id) ON UPDATE NO ACTION",
    "FOREIGN KEY `{name}_h` (a) REFERENCES `{schema}`.`{parent}` (id) ON DELETE RESTRICT",
    "PERIOD FOR stay (d1, d2)",
    "PERIOD FOR stay (d1, d2), UNIQUE KEY o (a, stay WITHOUT OVERLAPS)",
    "s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) GENERATED ALWAYS AS ROW END,"
    " PERIOD FOR SYSTEM_TIME (s, e)",
    "v VECTOR(3) NOT NULL, VECTOR INDEX (v) M=8 DISTANCE=cosine",
)

OPTIONS = (
    "ENGINE=InnoDB",
    "ENGINE=MyISAM",
    "ENGINE=Aria TRANSACTIONAL=1 PAGE_CHECKSUM=1",
    "DEFAULT CHARSET=latin1",
    "CHARSET=utf8mb4 COLLATE=utf8mb4_bin",
    "AUTO_INCREMENT=50",
    "COMMENT='it''s (a) comment, = ; PARTITION BY'",
    "ROW_FORMAT=DYNAMIC",
    "ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=4",
    "MAX_ROWS=1000 MIN_ROWS=3 AVG_ROW_LENGTH=50",
    "CHECKSUM=1 DELAY_KEY_WRITE=1 PACK_KEYS=1",
    "STATS_PERSISTENT=1 STATS_AUTO_RECALC=0 STATS_SAMPLE_PAGES=7",
    "ENCRYPTION='N'",
    "ENCRYPTED=NO ENCRYPTION_KEY_ID=1",
    "PAGE_COMPRESSED=1 PAGE_COMPRESSION_LEVEL=6",
    "`PAGE_COMPRESSED`='ON'",
    "COMPRESSION='zlib'",
    "INSERT_METHOD=NO",
    "WITH SYSTEM VERSIONING",
    "SHARD_ROW_ID_BITS=4 PRE_SPLIT_REGIONS=2",
    "AUTO_ID_CACHE=1",
    "TTL=`d1` + INTERVAL 3 DAY TTL_ENABLE='OFF'",
    "AUTOEXTEND_SIZE=4M",
    "TABLESPACE=innodb_file_per_table",
    "SECONDARY_ENGINE=NULL",
    "SEQUENCE=0",
)

PARTITIONS = (
    "PARTITION BY HASH (id) PARTITIONS 3",
    "PARTITION BY LINEAR HASH (id + 1) PARTITIONS 3",
    "PARTITION BY KEY (id)",
    "PARTITION BY KEY () PARTITIONS 2",
    "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10) COMMENT = 'a, (b',"
    " PARTITION `p,1` VALUES LESS THAN MAXVALUE)",
    "PARTITION BY RANGE COLUMNS(id) (PARTITION p0 VALUES LESS THAN (10))",
    "PARTITION BY LIST (id) (PARTITION p0 VALUES IN (1, 2, NULL), PARTITION p1 VALUES IN (3))",
    "PARTITION BY LIST (id) (PARTITION p0 VALUES IN (1), PARTITION p1 DEFAULT)",
    "PARTITION BY RANGE (id) SUBPARTITION BY HASH (id) SUBPARTITIONS 2"
    " (PARTITION p0 VALUES LESS THAN (5), PARTITION p1 VALUES LESS THAN (9))",
    "PARTITION BY RANGE (id) SUBPARTITION BY HASH (id)"
    " (PARTITION p0 VALUES LESS THAN (5) (SUBPARTITION s0 ENGINE = InnoDB, SUBPARTITION s1))",
)

KEYS = (
    "id INT PRIMARY KEY",
    "id INT AUTO_INCREMENT, PRIMARY KEY (id)",
    "id BIGINT UNSIGNED NOT NULL, PRIMARY KEY (id) USING BTREE COMMENT 'main'",
    "id BIGINT AUTO_RANDOM(5), PRIMARY KEY (id) CLUSTERED",
    "id INT NOT NULL, PRIMARY KEY (id) NONCLUSTERED",
    "id SERIAL",
    "id INT",
)


@dataclass
class Parts:
    """The parts that a server takes, each tried alone."""

    keys: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    partitions: list[str] = field(default_factory=list)

    def random(self, seed: int) -> str:
        """Return what stands behind the name in some CREATE TABLE; servers refuse some of them."""
        chosen = random.Random(seed)
        columns = _some(chosen, self.columns, 5)
        keys = _some(chosen, [i for i in self.items if "PERIOD" not in i and "VECTOR" not in i], 3)
        listed = [
            chosen.choice(self.keys),
            *PLAIN,
            *(f"`c{n}` {text.replace('{name}', f'c{n}')}" for n, text in enumerate(columns)),
            *keys,
        ]
        partitions = _some(chosen, self.partitions, 1) if chosen.random() < 0.3 else []
        return _whole(listed, [*_some(chosen, self.options, 3), *partitions])


def singles() -> Iterator[tuple[str, str, str]]:
    """Yield (kind, part, what stands behind the name in a CREATE TABLE) for each part alone."""
    for text in KEYS:
        yield "keys", text, _whole([text], [])
    for text in COLUMNS:
        yield "columns", text, _whole(["id INT", f"`c0` {text.replace('{name}', 'c0')}"], [])
    for text in ITEMS:
        yield "items", text, _whole(["id INT", *PLAIN, text], [])
    for text in OPTIONS:
        yield "options", text, _whole(["id INT PRIMARY KEY", *PLAIN], [text])
    for text in PARTITIONS:
        yield "partitions", text, _whole(["id INT PRIMARY KEY", *PLAIN], [text])


def words_of(create_sql: str) -> Counter[str]:
    """The words of a definition, except for those that have a shorter form or are implied."""
    tokens = tokenise(create_sql, tidb_comments=True)
    found = Counter(token.name.upper() for token in tokens)
    for word in (",", "=", "NULL", "VISIBLE", "DEFAULT", "CHARACTER", "CHARSET", "INDEX", "KEY"):
        found.pop(word, None)
    return found


def _some(chosen: random.Random, texts: Sequence[str], most: int) -> list[str]:
    return chosen.sample(texts, min(len(texts), chosen.randint(0, most)))


def _whole(items: Sequence[str], rest: Sequence[str]) -> str:
    return f"({', '.join(items)}) {' '.join(rest)}"
