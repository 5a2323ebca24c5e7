"""Column types with the SQL of values at their limits, for tests that try every type."""

from __future__ import annotations

EVERY_BYTE = bytes(range(256)).hex()
LATIN1 = f"0x{EVERY_BYTE}"

NUMBERS: dict[str, list[str]] = {
    "TINYINT": ["-128", "127", "0"],
    "TINYINT UNSIGNED": ["0", "255", "128"],
    "SMALLINT": ["-32768", "32767", "-1"],
    "SMALLINT UNSIGNED": ["0", "65535"],
    "MEDIUMINT": ["-8388608", "8388607", "-1"],
    "MEDIUMINT UNSIGNED": ["0", "16777215"],
    "INT": ["-2147483648", "2147483647", "-1"],
    "INT(5) UNSIGNED ZEROFILL": ["0", "4294967295"],
    "BIGINT": ["-9223372036854775808", "9223372036854775807", "-1"],
    "BIGINT UNSIGNED": ["0", "18446744073709551615"],
    "FLOAT": ["3.4028234e38", "-3.4028234e38", "1.1754944e-38", "0.1", "16777217", "1e-45"],
    "FLOAT(7,3)": ["1234.567", "-0.001", "0"],
    "FLOAT UNSIGNED": ["0.3", "1e10"],
    "DOUBLE": ["1.7976931348623157e308", "-2.2250738585072014e-308", "0.1", "5e-324", "1e22"],
    "DOUBLE(20,5)": ["123456789.12345", "-1.5"],
    "DECIMAL(65,30)": ["9" * 35 + "." + "9" * 30, "-" + "9" * 35 + "." + "9" * 30, "0", "-1e-30"],
    "DECIMAL(65,0)": ["9" * 65, "-" + "9" * 65, "-1"],
    "DECIMAL(30,30)": ["0." + "9" * 30, "-0.5"],
    "DECIMAL(10,2)": ["12345678.90", "-0.01", "0", "-12345678.90"],
    "DECIMAL(9,9)": ["0.123456789", "-0.000000001"],
    "DECIMAL(18,9) UNSIGNED": ["999999999.999999999", "0.1"],
    "DECIMAL(1,0)": ["-9", "9"],
    "BIT(1)": ["b'0'", "b'1'"],
    "BIT(9)": ["b'100001010'", "b'000001001'"],
    "BIT(64)": ["0xFFFFFFFFFFFFFFFF", "0x5C090A000D5C4E00", "0"],
    "YEAR": ["0", "1901", "2155", "'0000'"],
}
TEMPORAL: dict[str, list[str]] = {
    "DATE": ["'0000-00-00'", "'2021-00-00'", "'2021-02-00'", "'9999-12-31'", "'1000-01-01'",
             "'2021-02-31'"],
    "TIME": ["'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'", "'123:04:05'"],
    "DATETIME": ["'0000-00-00'", "'2021-00-00 01:02:03'", "'9999-12-31 23:59:59'"],
    "TIMESTAMP NULL": ["'0000-00-00'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'"],
} | {
    f"{kind}({n}){null}": [
        value[:-1] + (f".{digits[:n]}'" if " " in value or ":" in value else "'")
        for value in values
        for digits in ("123456", "000001", "999999", "900000", "000000")
    ]
    for n in range(1, 7)
    for kind, null, values in (
        ("TIME", "", ["'-838:59:58'", "'838:59:58'", "'-00:00:00'", "'00:00:00'", "'-24:00:01'"]),
        ("DATETIME", "", ["'0000-00-00'", "'2021-00-07 01:02:03'", "'9999-12-31 23:59:58'"]),
        ("TIMESTAMP", " NULL", ["'0000-00-00'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:06'"]),
    )
}  # fmt: skip
STRINGS: dict[str, list[str]] = {
    "CHAR(5) CHARACTER SET utf8mb4": ["''", "'a b'", "_utf8mb4 0xF09F9880C3A9", "'\\\\N'"],
    "CHAR(255) CHARACTER SET utf8mb4": ["''", "REPEAT(_utf8mb4 0xF09F9880, 255)", "'x'"],
    "CHAR(3) CHARACTER SET utf16": ["_utf16 0x00E9D83DDE00005C", "''", "_utf16 0x0A0A"],
    "VARCHAR(300) CHARACTER SET latin1": [f"_latin1 {LATIN1}", "''", "_latin1 0x818D8F909D"],
    "VARCHAR(63) CHARACTER SET utf8mb4": ["REPEAT(_utf8mb4 0xF09F9880, 63)", "'\\t\\n\\\\'"],
    "VARCHAR(64) CHARACTER SET utf8mb4": ["REPEAT(_utf8mb4 0xF09F9880, 64)", "' x '"],
    "VARCHAR(20) CHARACTER SET gbk": ["_gbk 0xD55CE55C8140", "'\\\\'"],
    "VARCHAR(20) CHARACTER SET utf16": ["_utf16 0x00090A0A005C005C0000", "'N'"],
    "VARCHAR(20) CHARACTER SET utf32": ["_utf32 0x0001F6000000005C", "''"],
    "VARCHAR(20) CHARACTER SET ucs2": ["_ucs2 0x5C095C0A", "''"],
    "TEXT CHARACTER SET sjis": ["_sjis 0x835C955C", "''"],
    "TINYTEXT CHARACTER SET cp1251": ["_cp1251 0xCFF0E8E2E5F2", "''"],
    "MEDIUMTEXT CHARACTER SET utf8mb4": ["REPEAT(_utf8mb4 0xF09F9880, 20000)", "' '"],
    "LONGTEXT CHARACTER SET utf8mb4": ["REPEAT('long ', 20000)", "''"],
    "BINARY(4)": ["0x00000000", "0x61000000", "0x00006100", "'a'", "0x20202020"],
    "BINARY(255)": ["0x01", f"0x{EVERY_BYTE[2:]}", "''"],
    "VARBINARY(300)": [f"0x{EVERY_BYTE}", "0x6100", "''", "0x00", "0x5C4E"],
    "TINYBLOB": [f"0x{EVERY_BYTE[:510]}", "''"],
    "BLOB": [f"0x{EVERY_BYTE * 2}", "'\\\\N'"],
    "MEDIUMBLOB": [f"REPEAT(0x{EVERY_BYTE}, 300)", "''"],
    "LONGBLOB": [f"REPEAT(0x{EVERY_BYTE}, 1000)", "0x00", "0x00000000"],
    "ENUM('a','é','','tab\\t') CHARACTER SET utf8mb4": ["'é'", "''", "'a'", "0", "'tab\\t'"],
    "ENUM('é','b,c') CHARACTER SET latin1": ["'é'", "'b,c'", "'not a label'"],
    "ENUM('é','b') CHARACTER SET utf16": ["'é'", "'b'"],
    "ENUM(" + ",".join(f"'l{n}'" for n in range(300)) + ")": ["'l0'", "'l255'", "'l299'"],
    "SET('a','é') CHARACTER SET utf8mb4": ["''", "'a'", "'é'", "'a,é'"],
    "SET('a','é') CHARACTER SET latin1": ["''", "'a'", "'é'", "'a,é'"],
    "SET('a','é','c') CHARACTER SET utf16": ["''", "'a,é,c'", "'é'"],
    "SET(" + ",".join(f"'s{n}'" for n in range(64)) + ")": ["'s0'", "'s9,s63'", str(2**64 - 1)],
    "GEOMETRY": ["ST_GeomFromText('POINT(1 -2.5)', 4326)", "ST_GeomFromText('LINESTRING(0 0,9 9)')"],  # noqa: E501
    "POINT": ["ST_GeomFromText('POINT(0 10)')"],
}  # fmt: skip
MARIADB_ONLY: dict[str, list[str]] = {
    "UUID": [
        "'123e4567-e89b-12d3-a456-426655440000'",
        "'00000000-0000-0000-0000-000000000000'",
        "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
        "'01890a5d-ac96-774b-bcce-b302099a8057'",
    ],
    "INET6": ["'::'", "'::1'", "'::ffff:1.2.3.4'", "'2001:db8::ff00:42:0'", "'1::'"],
    "INET4": ["'0.0.0.0'", "'255.255.255.255'", "'1.2.0.0'"],
    "JSON": ['\'{"a": [1, "\\\\\\\\t"]}\'', "'null'"],
    "VARCHAR(300) COMPRESSED": ["REPEAT('a', 300)", "''", "'short'"],
    "LONGBLOB COMPRESSED": [f"REPEAT(0x{EVERY_BYTE}, 100)", "''", "0x00"],
    "TEXT COMPRESSED CHARACTER SET utf16": ["REPEAT('é', 500)", "'x'"],
}
