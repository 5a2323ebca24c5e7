"""What collations take characters for: the tables against the servers' own weights."""

from __future__ import annotations

import pytest

from replicator.pipeline.plans.filter_columns import known_collation
from replicator.routing.expression.collation_folding import (
    FOLDED,
    LOWER,
    PLAIN,
    SWEDISH,
    UPPER,
    characters_of,
)
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.mariadb11 import MariaDB11Server

_CODES = [
    code for code in (*range(1, 0x30000), *range(0xE0000, 0xE0200)) if not 0xD800 <= code <= 0xDFFF
]
_WEIGHT = 4  # hexadecimal digits of one
_PRINTABLE = range(0x20, 0x7F)
_AT_ONCE = 5000


def collations(server: DatabaseServer) -> list[str]:
    """The collations of a server that the tables are about."""
    wanted = [f"utf8mb4_{kind}" for kind in sorted(FOLDED - {PLAIN, SWEDISH})]
    there = {str(row[0]) for row in server.execute("SHOW COLLATION")}
    # MariaDB lists those for all charsets by a name without one.
    return [name for name in wanted if {name, name.removeprefix("utf8mb4_")} & there]


@pytest.mark.slow
@pytest.mark.parametrize("server", ["mysql_source", "mariadb11_source"])
def test_each_character_is_taken_for_what_the_server_takes_it_for(
    server: str, request: pytest.FixtureRequest, database_name: str
) -> None:
    real: DatabaseServer = request.getfixturevalue(server)
    rows = [f"({c}, CONVERT(_utf32 x'{c:08x}' USING utf8mb4))" for c in _CODES]
    real.execute(
        f"CREATE DATABASE {database_name}",
        f"CREATE TABLE {database_name}.x (code INT PRIMARY KEY, c VARCHAR(4)"
        " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin)",
        *(
            f"INSERT INTO {database_name}.x VALUES {','.join(rows[at : at + _AT_ONCE])}"
            for at in range(0, len(rows), _AT_ONCE)
        ),
    )
    found = collations(real)
    assert len(found) >= 4
    for collation in found:
        answer = real.execute(
            f"SELECT code, HEX(WEIGHT_STRING(c COLLATE {collation})) FROM {database_name}.x"
        )
        weights = {int(str(code)): str(weight) for code, weight in answer}
        letters = {weights[code]: chr(code).lower() for code in reversed(_PRINTABLE)}
        theirs = {}
        for code, weight in weights.items():
            parts = [weight[at : at + _WEIGHT] for at in range(0, len(weight), _WEIGHT)]
            if all(part in letters for part in parts):
                theirs[chr(code)] = "".join(letters[part] for part in parts)
        # MariaDB 11 takes the name of MySQL's collation for its own one of Unicode 14.
        known = known_collation(collation, mariadb=isinstance(real, MariaDB11Server))
        assert known is not None
        ours = {c: like for c, like in characters_of(known.kind).items() if c != "\0"}
        assert ours == theirs, collation


@pytest.mark.parametrize("server", ["mysql_source", "mariadb_source"])
def test_latin_letters_are_taken_for_what_the_server_takes_them_for(
    server: str, request: pytest.FixtureRequest
) -> None:
    real: DatabaseServer = request.getfixturevalue(server)
    for kind, collation in ((SWEDISH, "latin1_swedish_ci"), (PLAIN, "latin1_general_ci")):
        selected = ",".join(
            f"HEX(WEIGHT_STRING(_latin1 x'{b:02x}' COLLATE {collation})),"
            f"HEX(CONVERT(_latin1 x'{b:02x}' USING utf8mb4))"
            for b in range(256)
        )
        [row] = real.execute(f"SELECT {selected}")
        texts = [bytes.fromhex(str(text)).decode() for text in row[1::2]]
        weights = dict(zip(texts, row[::2], strict=True))
        letters = {weights[chr(code)]: chr(code).lower() for code in _PRINTABLE}
        theirs = {text: letters[w] for text, w in weights.items() if w in letters}
        assert dict(characters_of(kind)) == theirs


@pytest.mark.parametrize("server", ["mysql_source", "mariadb_source", "mysql56_source"])
@pytest.mark.parametrize("collation", ["utf8mb4_bin", "utf8mb4_general_ci"])
def test_case_is_that_of_the_server_as_far_as_plain_ascii_goes(
    server: str, collation: str, request: pytest.FixtureRequest
) -> None:
    real: DatabaseServer = request.getfixturevalue(server)
    codes = [code for code in _CODES if code < 0x10000]
    for function, table in (("LOWER", LOWER), ("UPPER", UPPER)):
        wrong = []
        for at in range(0, len(codes), _AT_ONCE):
            text = "".join(map(chr, codes[at : at + _AT_ONCE]))
            literal = f"_utf8mb4 x'{text.encode().hex()}'"
            [[answer]] = real.execute(f"SELECT HEX({function}({literal} COLLATE {collation}))")
            theirs = bytes.fromhex(str(answer)).decode()
            ours = text.translate(table)
            assert len(ours) == len(theirs)
            wrong += [
                (a, b) for a, b in zip(ours, theirs, strict=True) if a != b and (a + b).isascii()
            ]
            wrong += [
                (a, b) for a, b in zip(ours, theirs, strict=True) if a.isascii() != b.isascii()
            ]
        assert wrong == []
