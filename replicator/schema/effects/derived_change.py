"""The ALTER TABLE that makes one structure of another, where two structures tell it. Pure.

For a change whose own text was not seen: an online schema change that had begun before the task.
Both structures are texts of SHOW CREATE TABLE of one server, which writes the same thing in one
way. What they can't tell is an error: above all a new name, which looks like a column that goes and
another one that comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from replicator.ddl.parser.tokens import Token, TokenKind, tokenise
from replicator.mysql.names import TableName, folded, quote
from replicator.schema.structure.structure import Table


class NotDerivableError(Exception):
    """Two structures do not tell what was done; the text says why."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """A CREATE TABLE taken apart. Texts by name: ``columns`` in their order, ``keys``, ``options``.

    ``others``: constraints and the like without their names; ``rest``: what is behind the options.
    """

    columns: Mapping[str, str]
    keys: Mapping[str, str]
    others: tuple[str, ...]
    options: Mapping[str, str]
    rest: str


_KEY_WORDS = frozenset({"PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "VECTOR"})
_CHARSET = frozenset({"CHARSET", "COLLATE"})
_OWN = frozenset({"CHARACTER", "CHARSET", "COLLATE"})
_PRIMARY = "PRIMARY KEY"


def derived_alter(before: Table, after: Table, name: TableName) -> str:
    """The ALTER TABLE of ``name`` that makes ``after`` of ``before``; empty where both are alike.

    Raises NotDerivableError.
    """
    old, new = _taken_apart(before.create_sql), _taken_apart(after.create_sql)
    if old.others != new.others:
        raise NotDerivableError("its constraints differ from those of its ghost table")
    if old.rest != new.rest:
        raise NotDerivableError("its partitions or the like differ from those of its ghost table")
    gone, added = _dropped_keys(old, new), _added_keys(old, new)
    actions = [*gone, *_charset(old, new), *_columns(old, new), *added, *_options(old, new)]
    return f"ALTER TABLE {name.quoted} {', '.join(actions)}" if actions else ""


def rebuilding(table: Table, name: TableName) -> str:
    """The ALTER TABLE of ``name`` that leaves the structure ``table`` as it is."""
    engine = _taken_apart(table.create_sql).options.get("ENGINE", "InnoDB")
    return f"ALTER TABLE {name.quoted} ENGINE={engine}"


def _columns(old: _Parts, new: _Parts) -> Iterator[str]:
    names = {folded(name): name for name in new.columns}
    dropped = [name for name in old.columns if folded(name) not in names]
    former = {folded(name): text for name, text in old.columns.items()}
    added = [name for name in new.columns if folded(name) not in former]
    if dropped and added:
        raise NotDerivableError(
            f"column {dropped[0]} disappears and {added[0]} appears: it may be the same column,"
            " renamed"
        )
    stay = [name for name in former if name in names]
    if stay != [folded(name) for name in new.columns if folded(name) in former]:
        raise NotDerivableError("its columns are in another order than those of its ghost table")
    yield from (f"DROP COLUMN {quote(name)}" for name in dropped)
    place = " FIRST"
    last = [*new.columns][-1]
    appended = added and set([*new.columns][-len(added) :]) == set(added)
    for name, text in new.columns.items():
        if name in added:
            yield f"ADD COLUMN {text}{'' if appended else place}"
        elif text != former[folded(name)]:
            yield f"MODIFY COLUMN {text}"
        place = f" AFTER {quote(name)}" if name != last else ""


def _dropped_keys(old: _Parts, new: _Parts) -> Iterator[str]:
    for name, text in old.keys.items():
        if new.keys.get(name) != text:
            yield f"DROP {_PRIMARY}" if name == _PRIMARY else f"DROP INDEX {quote(name)}"


def _added_keys(old: _Parts, new: _Parts) -> Iterator[str]:
    for name, text in new.keys.items():
        if old.keys.get(name) != text:
            yield f"ADD {text}"


def _charset(old: _Parts, new: _Parts) -> Iterator[str]:
    wanted = {word: new.options.get(word) for word in _CHARSET}
    if wanted == {word: old.options.get(word) for word in _CHARSET}:
        return
    texts = [*old.columns.values(), *new.columns.values()]
    if any(token.keyword in _OWN for text in texts for token in tokenise(text)):
        raise NotDerivableError("its charset differs from that of its ghost table")
    collate = f" COLLATE {wanted['COLLATE']}" if wanted["COLLATE"] else ""
    yield f"CONVERT TO CHARACTER SET {wanted['CHARSET']}{collate}"


def _options(old: _Parts, new: _Parts) -> Iterator[str]:
    for word in sorted((old.options.keys() | new.options.keys()) - _CHARSET):
        value = new.options.get(word)
        if value == old.options.get(word):
            continue
        if value is None and word != "COMMENT":
            raise NotDerivableError(f"its ghost table has lost the option {word}")
        yield f"{word}=''" if value is None else f"{word}={value}"


def _taken_apart(create_sql: str) -> _Parts:
    tokens = tokenise(create_sql)
    opening = next((n for n, token in enumerate(tokens) if token.text == "("), None)
    if opening is None:
        raise NotDerivableError("the task does not understand its structure")
    columns: dict[str, str] = {}
    keys: dict[str, str] = {}
    others: list[str] = []
    depth = 0
    first = opening + 1
    for place in range(opening, len(tokens)):
        token = tokens[place]
        depth += (token.text == "(") - (token.text == ")")
        if (token.text == "," and depth == 1) or depth == 0:
            item = tokens[first:place]
            text = create_sql[item[0].start : token.start].rstrip()
            if item[0].kind is TokenKind.QUOTED:
                columns[item[0].name] = text
            elif item[0].keyword in _KEY_WORDS:
                named = next(t for t in item if t.kind is TokenKind.QUOTED)
                keys[_PRIMARY if item[0].keyword == "PRIMARY" else named.name] = text
            else:
                nameless = item[2:] if item[0].keyword == "CONSTRAINT" else item
                others.append(" ".join(t.text for t in nameless))
            first = place + 1
        if depth == 0:
            break
    options, rest = _read_options(tokens[first:])
    return _Parts(columns, keys, tuple(sorted(others)), options, rest)


def _read_options(tokens: tuple[Token, ...]) -> tuple[dict[str, str], str]:
    found: dict[str, str] = {}
    place = 0
    while place < len(tokens):
        if tokens[place].keyword == "DEFAULT":
            place += 1
        if place + 2 >= len(tokens) or tokens[place + 1].text != "=":
            break
        found[tokens[place].keyword] = tokens[place + 2].text
        place += 3
    found.pop("AUTO_INCREMENT", None)
    return found, " ".join(token.text for token in tokens[place:])
