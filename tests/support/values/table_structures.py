"""Tables of every kind that servers have, and what a server says of a table."""

from __future__ import annotations

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer

EVERYWHERE = {
    "types": """(
        i TINYINT, j SMALLINT UNSIGNED ZEROFILL, k MEDIUMINT, l BIGINT UNSIGNED NOT NULL,
        m DECIMAL(65,30), n FLOAT, o DOUBLE(10,3), p BIT(17) DEFAULT b'101', q YEAR DEFAULT 2001,
        r DATE DEFAULT '2024-02-29', s TIME(6), t DATETIME(3), u TIMESTAMP NULL DEFAULT NULL,
        v TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
        w CHAR(3), x VARBINARY(9), y LONGBLOB, z GEOMETRY, e ENUM('a','b,''c') DEFAULT 'b,''c',
        f SET('x','y'), g TINYTEXT, h BINARY(2) NOT NULL)""",
    "counter": "(id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 77",
    "keys": """(a INT NOT NULL, b VARCHAR(30), c TEXT, d INT, PRIMARY KEY (a, d),
        UNIQUE KEY `u``x` (b), KEY part (c(10)), KEY two (d, a) COMMENT 'with ''words',
        FULLTEXT KEY ft (c))""",
    "charsets": """(a VARCHAR(9), b VARCHAR(9) CHARACTER SET utf8, c TEXT COLLATE latin1_german2_ci,
        d CHAR(9) CHARACTER SET utf8 COLLATE utf8_bin, e VARCHAR(9) CHARACTER SET utf8mb4,
        f ENUM('ä') CHARACTER SET koi8r, KEY (a), KEY (b)) CHARACTER SET latin1
        COLLATE latin1_german1_ci""",
    "default_collation": "(a VARCHAR(9) CHARACTER SET latin1) CHARACTER SET utf8mb4",
    "comments": """(`FOREIGN KEY` INT COMMENT 'AUTO_INCREMENT, FOREIGN KEY (a) REFERENCES b (c)',
        `AUTO_INCREMENT` INT COMMENT 'a''b\\\\c\\n', ` ``x` VARCHAR(40) DEFAULT '`),; -- /*')
        COMMENT 'AUTO_INCREMENT=9 ENGINE=MyISAM /* */ ''\\\\'""",
    "ranges": """(id INT NOT NULL, at DATE NOT NULL, PRIMARY KEY (id, at))
        PARTITION BY RANGE (YEAR(at)) SUBPARTITION BY HASH (id) SUBPARTITIONS 2 (
        PARTITION old VALUES LESS THAN (2020) COMMENT = 'ENGINE = MyISAM',
        PARTITION new VALUES LESS THAN MAXVALUE)""",
    "hashed": "(id INT NOT NULL PRIMARY KEY) PARTITION BY KEY (id) PARTITIONS 3",
    "lists": """(`engine` INT NOT NULL) PARTITION BY LIST (`engine`)
        (PARTITION a VALUES IN (1,2), PARTITION b VALUES IN (3,NULL))""",
    "compact": "(id INT PRIMARY KEY, a TEXT) ROW_FORMAT=COMPACT STATS_PERSISTENT=1",
}
"""What MariaDB and MySQL 5.6 both understand."""
MARIADB = {
    "computed": """(a INT, b INT AS (a * 2) VIRTUAL, c VARCHAR(20) AS (CONCAT(a, ',x)')) STORED,
        d JSON, KEY (b))""",
    "checked": """(a INT CHECK (a > 0), b INT, CONSTRAINT small CHECK (a < 100 AND b IN (1, 2)))""",
    "expressions": """(a CHAR(36) DEFAULT UUID(), b INT DEFAULT (1 + 2), c UUID, d INET6,
        e DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP)""",
    "hidden": "(a INT, b INT INVISIBLE DEFAULT 5, KEY k (a) IGNORED)",
    "packed": "(a INT PRIMARY KEY, b BLOB COMPRESSED) PAGE_COMPRESSED=1",
    "versioned": "(a INT PRIMARY KEY, b INT WITHOUT SYSTEM VERSIONING) WITH SYSTEM VERSIONING",
    "utf8mb3": "(a VARCHAR(20), b TEXT COLLATE utf8mb3_unicode_ci) CHARACTER SET utf8mb3",
}
_COLUMNS = """
SELECT COLUMN_NAME, COLUMN_DEFAULT, IS_NULLABLE, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME,
EXTRA, COLUMN_COMMENT {more} FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION
"""
_KEYS = """
SELECT INDEX_NAME, SEQ_IN_INDEX, COLUMN_NAME, NON_UNIQUE, SUB_PART, NULLABLE, INDEX_TYPE,
INDEX_COMMENT FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY 1, 2
"""
_PARTITIONS = """
SELECT PARTITION_NAME, SUBPARTITION_NAME, PARTITION_METHOD, SUBPARTITION_METHOD,
REPLACE(PARTITION_EXPRESSION, '`', ''), PARTITION_DESCRIPTION, PARTITION_COMMENT
FROM information_schema.PARTITIONS
WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY 1, 2
"""
_TABLE = """
SELECT TABLE_TYPE, ENGINE, ROW_FORMAT, TABLE_COLLATION, CREATE_OPTIONS, TABLE_COMMENT
FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
"""


def structure(server: DatabaseServer, schema: str, table: str) -> dict[str, object]:
    """Everything that information_schema says of a table but counters and sizes."""
    more = ", GENERATION_EXPRESSION" if isinstance(server, MariaDBServer) else ""
    queries = {
        "columns": _COLUMNS.format(more=more),
        "keys": _KEYS,
        "partitions": _PARTITIONS,
        "table": _TABLE,
    }
    with server.connect() as connection, connection.cursor() as cursor:
        found: dict[str, object] = {}
        for what, query in queries.items():
            cursor.execute(query, (schema, table))
            found[what] = cursor.fetchall()
        return found
