"""The SQL scripts of an application: its files in order, cut into statements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.parser.tokens import tokenise

_DELIMITER = re.compile(r"^[ \t]*DELIMITER[ \t]+(\S+)[ \t]*$", re.IGNORECASE | re.MULTILINE)
_NEW_ROWS = ("INSERT", "REPLACE", "LOAD")
_QUERY = ("SELECT", "TABLE", "WITH")
_WITHOUT_EFFECT = (
    "SET NAMES",
    "SET AUTOCOMMIT",
    "COMMIT",
    "START TRANSACTION",
    "BEGIN",
    "USE ",
    "LOCK",
    "UNLOCK",
)


@dataclass(frozen=True, slots=True)
class Script:
    """One file: its name, and its statements in order, each with its meaning."""

    name: str
    statements: tuple[ParsedStatement, ...]


def scripts_of(folder: Path, pattern: str, replaced: Mapping[str, str]) -> list[Script]:
    """Read the files of a folder, `V2` before `V10`.

    Args:
        folder: also the files of its folders are read.
        pattern: of the names of files, with wildcards.
        replaced: texts that are placeholders, by what takes their place.
    """
    files = [path for path in folder.rglob(pattern) if path.is_file()]
    scripts = []
    for path in sorted(files, key=lambda path: _in_order(str(path.relative_to(folder)))):
        text = path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
        for placeholder, value in replaced.items():
            text = text.replace(placeholder, value)
        scripts.append(Script(path.name, tuple(_understood(statements_of(text)))))
    return scripts


def adds_rows(statement: ParsedStatement) -> bool:
    """Whether a statement brings rows whose keys would be those of other shards, too."""
    return statement.kind is StatementKind.DML and statement.detail.upper() in _NEW_ROWS


def copies_rows(statement: ParsedStatement) -> bool:
    """Whether a statement makes rows of what its own shard has: INSERT … SELECT."""
    if not adds_rows(statement) or not statement.tables:
        return False
    after = statement.tables[0].span.end
    tokens = [token for token in statement.tokens if token.start >= after]
    if tokens and tokens[0].text == "(" and tokens[1].keyword not in _QUERY:
        names = next(place for place, token in enumerate(tokens) if token.text == ")")
        tokens = tokens[names + 1 :]
    return next((t.keyword in _QUERY for t in tokens if t.text != "("), False)


def statements_of(text: str) -> Iterator[str]:
    """Cut a script into statements: at semicolons, or at what its DELIMITER lines say."""
    pieces = _DELIMITER.split(text)
    yield from _cut(pieces[0])
    for delimiter, piece in zip(pieces[1::2], pieces[2::2], strict=True):
        yield from _cut(piece) if delimiter == ";" else _nonempty(piece.split(delimiter))


def _cut(text: str) -> Iterator[str]:
    first, end = None, 0
    for token in tokenise(text):
        if first is None:
            # An executable comment begins before its first token.
            comment = text.find("/*!", end, token.start)
            first = token.start if comment < 0 else comment
        if token.text == ";":
            yield from _nonempty([text[first : token.start]])
            first, end = None, token.end
    if first is not None:
        yield text[first:].strip()


def _nonempty(pieces: Iterable[str]) -> Iterator[str]:
    return (piece.strip() for piece in pieces if tokenise(piece))


def _understood(texts: Iterable[str]) -> Iterator[ParsedStatement]:
    for text in texts:
        words = " ".join(token.text for token in tokenise(text)[:2]).upper() + " "
        if not words.startswith(_WITHOUT_EFFECT):
            yield classify(text, default_schema="")


def _in_order(name: str) -> list[tuple[str, int]]:
    return [(text, int(number or -1)) for text, number in re.findall(r"(\D*)(\d*)", name)]
