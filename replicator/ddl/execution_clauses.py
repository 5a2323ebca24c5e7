"""What a statement says about how it is to be executed, which changes nothing of what it does.

``ALGORITHM`` and ``LOCK`` (MySQL's manual, "ALTER TABLE Statement"), ``WAIT n`` and ``NOWAIT``
(MariaDB's, "WAIT and NOWAIT"). They are about the source's server, at that moment: another one may
know no such way (MariaDB copies a table without a lock only since 11.2), or not have the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replicator.ddl.alter_actions import split_at_commas
from replicator.ddl.statement import Span
from replicator.ddl.tokens import Token, TokenKind

_WAYS = frozenset({"ALGORITHM", "LOCK"})


def of_alter(tokens: Sequence[Token]) -> tuple[Span, ...]:
    """Where such clauses stand among what follows the table's name in an ALTER TABLE.

    An action that is nothing else goes with a comma of it. Where all are, they stay: without any
    action the statement may be none.
    """
    waits = _waits(tokens[:2])
    tokens = [token for token in tokens if not waits or token.start >= waits[0].end]
    actions = split_at_commas(tokens)
    commas = _commas(tokens)
    first = next((n for n, action in enumerate(actions) if not _way(action)), None)
    if first is None or len(commas) != len(actions) - 1:
        return waits
    found = list(waits)
    for place, action in enumerate(actions):
        if _way(action) == len(action):
            comma = commas[place - 1 if place > first else place]
            found += [Span(action[0].start, action[-1].end), Span(comma.start, comma.end)]
    return tuple(found)


def of_index(tokens: Sequence[Token]) -> tuple[Span, ...]:
    """Where such clauses stand among what follows the table's name in CREATE or DROP INDEX."""
    return tuple(_among_options(tokens))


def _among_options(tokens: Sequence[Token]) -> Iterator[Span]:
    depth = 0
    for place, token in enumerate(tokens):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth:
            continue
        yield from _waits(tokens[place : place + 2])
        if length := _way(tokens[place:]):
            yield Span(token.start, tokens[place + length - 1].end)


def _commas(tokens: Sequence[Token]) -> list[Token]:
    depth = 0
    found = []
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if token.text == "," and depth == 0:
            found.append(token)
    return found


def _way(tokens: Sequence[Token]) -> int:
    """How many tokens ``ALGORITHM [=] word`` or ``LOCK [=] word`` has; 0 if it is none."""
    if not tokens or tokens[0].keyword not in _WAYS:
        return 0
    length = 3 if len(tokens) > 1 and tokens[1].text == "=" else 2
    return length if len(tokens) >= length and tokens[length - 1].keyword else 0


def _waits(tokens: Sequence[Token]) -> tuple[Span, ...]:
    """The place of ``NOWAIT`` or ``WAIT n``, where one of them comes first."""
    words = [token.keyword for token in tokens]
    if words[:1] == ["NOWAIT"]:
        return (Span(tokens[0].start, tokens[0].end),)
    if words[:1] == ["WAIT"] and len(tokens) > 1 and tokens[1].kind is TokenKind.NUMBER:
        return (Span(tokens[0].start, tokens[1].end),)
    return ()
