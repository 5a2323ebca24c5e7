"""Removes the values of rows from the messages of servers.

Servers quote values in their errors: "Duplicate entry 'ada@example.org' for key 'mail'". These
values are not escaped, so a quote does not end one; the text before and after a value does. Message
texts: MySQL manual, "Server Error Message Reference"; MariaDB KB, "MariaDB Error Code Reference";
TiDB's ``pkg/errno/errname.go``.
"""

from __future__ import annotations

import re

from replicator.mysql.errors import (
    CONTENTION,
    LOGIN_REFUSED,
    MISSING_PRIVILEGE,
    NO_SUCH_TABLE,
    READ_ONLY,
    RESOURCES,
    UNAVAILABLE,
    ErrorCode,
)

HIDDEN = "…"
"""Replaces a value."""

_WITHOUT_VALUES = (
    UNAVAILABLE
    | CONTENTION
    | RESOURCES
    | READ_ONLY
    | LOGIN_REFUSED
    | MISSING_PRIVILEGE
    | NO_SUCH_TABLE
)
"""Errors that quote hosts, accounts, files and tables, but no value of a row."""

_OWN_TEXT = frozenset(
    {
        ErrorCode.ER_SIGNAL_WARN,
        ErrorCode.ER_SIGNAL_NOT_FOUND,
        ErrorCode.ER_SIGNAL_EXCEPTION,
    }
)
"""Messages that a trigger or a procedure composes, perhaps of values."""

_KNOWN = tuple(
    (re.compile(pattern, re.DOTALL | re.IGNORECASE), shown)
    for pattern, shown in (
        (r"(Duplicate entry )'.*'( for key )", rf"\1'{HIDDEN}'\2"),
        (r"(value:? )['\"].*['\"]( for (?:function|column) )", rf"\1'{HIDDEN}'\2"),
        (r"(string:? )['\"].*['\"]( for column | from )", rf"\1'{HIDDEN}'\2"),
        (r"(partition for value ).*", rf"\1{HIDDEN}"),
        (r"(, value is ).*", rf"\1{HIDDEN}"),
        (r"(constant )\S+( overflows)", rf"\1{HIDDEN}\2"),
        (r"(out of range in )'.*'", rf"\1'{HIDDEN}'"),
        (r"(near )'.*'( at line \d+)", rf"\1'{HIDDEN}'\2"),
    )
)

_NAME = re.compile(
    r"\b(?:columns?|key|index|field|table|constraint|check|database|schema|trigger|function"
    r"|procedure|view|partition|engine|character set|collation|conversion from)"
    r":? (['\"])(?P<name>[^'\"]*)\1",
    re.IGNORECASE,
)
"""A quoted name, and the kind of its object."""


_CONTRACTION = re.compile(
    r"\b(?:(can|doesn|isn|don|didn|wasn|won|hasn)'t|(target|source|server|shard|table)'s)\b",
    re.IGNORECASE,
)
"""An apostrophe in a contraction is not a quote."""


def without_values(text: str, code: int = 0) -> str:
    """Return a server's text with `HIDDEN` for values; names of columns, keys and tables are kept.

    ``code``: the error's number, 0 if it is unknown. A quoted text that is not known to be a name
    counts as a value.
    """
    if code in _WITHOUT_VALUES:
        return text
    if code in _OWN_TEXT:
        return f"{HIDDEN} (the text of a SIGNAL of the target)"
    for pattern, shown in _KNOWN:
        text, found = pattern.subn(shown, text, count=1)
        if found:
            return text
    return _without_quoted(text)


def _without_quoted(text: str) -> str:
    """Return the text without the part from its first to its last quote, except quoted names."""
    names = [match.span("name") for match in _NAME.finditer(text)]
    quotes = [
        at
        for at, character in enumerate(text)
        if character in "'\"" and not any(begin - 1 <= at <= end for begin, end in names)
    ]
    words = {match.start() + len(match[1] or match[2]) for match in _CONTRACTION.finditer(text)}
    quotes = [at for at in quotes if at not in words and text.count("`", 0, at) % 2 == 0]
    if len(quotes) < 2:
        return text if not quotes else text[: quotes[0] + 1] + HIDDEN
    first, last = quotes[0], quotes[-1]
    return text[: first + 1] + HIDDEN + text[last:]
