"""The session settings that affect the values an ALTER TABLE stores in existing rows.

Two shards that run the same text with different settings get different values. A TIMESTAMP becomes
the local time of a DATETIME ("The DATE, DATETIME, and TIMESTAMP Types" of MySQL's manual). A server
rounds or truncates fractions of seconds that a column no longer keeps ("Fractional Seconds in Time
Values"): MariaDB truncates, MySQL rounds, and each has a mode for the opposite.
"""

from __future__ import annotations

from collections.abc import Iterator

from replicator.ddl.analysis.column_defaults import DefinedColumn, redefined
from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.rewrite.normalise import normalise
from replicator.mysql.column_types import FRACTIONAL
from replicator.mysql.connection.session_settings import UTC
from replicator.mysql.session_context.sql_modes import PAD_CHAR_TO_FULL_LENGTH, rounds_times
from replicator.mysql.session_context.statement_context import StatementContext
from replicator.schema.effects.removed_rows import removed_rows
from replicator.schema.effects.traced_columns import family
from replicator.schema.structure.structure import Column, Table, fraction_digits

_WHOLE = frozenset({"date", "year"})
_MOST_DIGITS = 6
_UTC_NAMES = frozenset(
    {UTC, "-00:00", "utc", "gmt", "z", "etc/utc", "etc/gmt", "universal", "zulu"}
)


def text_and_rows(statement: ParsedStatement, before: Table | None) -> str:
    """Return a statement's normalised text, with the removed rows of partitions as a comment.

    `before`: the structure of the changed table, None if unknown.
    """
    text, removed = normalise(statement), removed_rows(statement, before)
    return f"{text} /* removes {removed} */" if removed else text


def compared_text(
    statement: ParsedStatement, before: Table | None, context: StatementContext
) -> str:
    """Return a statement's text as `text_and_rows` does, but with `settings_of` it as a comment."""
    text, settings = normalise(statement), settings_of(statement, before, context)
    return f"{text} /* {settings} */" if settings else text


def settings_of(statement: ParsedStatement, before: Table | None, context: StatementContext) -> str:
    """Return the settings that affect a statement's result, and the rows that it removes.

    The settings have their values. The rows belong to partitions that the statement drops or
    empties. The text is empty if there is neither, or if the structure ``before`` of the changed
    table is unknown.
    """
    return ", ".join(dict.fromkeys(_settings(statement, before, context)))


def _settings(
    statement: ParsedStatement, before: Table | None, context: StatementContext
) -> Iterator[str]:
    if removed := removed_rows(statement, before):
        yield f"removes {removed}"
    modes = context.sql_mode or 0
    for new in redefined(statement):
        old = None if before is None else before.column(new.existing)
        if old is None or old.generated:
            continue
        if (old.base_type == "timestamp") != (new.type_word == "timestamp"):
            yield f"time_zone {_zone(context)}"
        if _loses_fractions(old, new):
            rounds = rounds_times(modes, mariadb=bool(context.mariadb))
            yield f"fractions of seconds {'rounded' if rounds else 'truncated'}"
        if modes & PAD_CHAR_TO_FULL_LENGTH and "char" in {old.base_type} - {new.type_word}:
            yield "PAD_CHAR_TO_FULL_LENGTH"


def _zone(context: StatementContext) -> str:
    zone = context.time_zone or UTC
    return UTC if zone.lower() in _UTC_NAMES else zone


def _loses_fractions(old: Column, new: DefinedColumn) -> bool:
    """Return whether values may have fractions of seconds that the new type does not keep."""
    if new.type_word not in FRACTIONAL | _WHOLE:
        # A time that becomes a number is rounded, too.
        return fraction_digits(old) > 0 and family(new.type_word) == "integer"
    if old.base_type in FRACTIONAL | _WHOLE or old.sql_type.family == "integer":
        had = fraction_digits(old)
    else:
        had = _MOST_DIGITS
    return had > (new.digits if new.type_word in FRACTIONAL else 0)
