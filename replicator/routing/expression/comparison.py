"""Converts values so that Python compares them as MySQL does.

Numbers are compared by value, texts by collation, dates as moments (MySQL's manual, "Type
Conversion in Expression Evaluation").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from replicator.routing.expression.numbers import as_double, on_one_scale, whole_number
from replicator.routing.expression.types import (
    BOOLEAN,
    Call,
    Checked,
    Collation,
    Kind,
    UnsupportedExpressionError,
    ValueType,
)

_PRINTABLE = re.compile(r"[ -~]*\Z")
_SHORT_NUMBER = re.compile(r"-?[0-9]{1,15}\Z")
_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z")
_DATETIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?\Z")
_WITH_OFFSET = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d:\d\d\Z")
_TIME = re.compile(r"(-)?(\d{2,3}):([0-5]\d):([0-5]\d)(?:\.(\d{1,6}))?\Z")
_MOST_HOURS = 838
_YEARS = range(1901, 2156)
_MOMENTS = frozenset({Kind.DATE, Kind.DATETIME})
_ORDERS = frozenset({"<", "<=", ">", ">="})


@dataclass(frozen=True, slots=True)
class Comparable:
    """Values converted so that Python compares them as the server does.

    ``padded``: whether they are ordered as bytes that are padded with spaces.
    """

    values: tuple[Checked, ...]
    padded: bool = False


def compared(sign: str, left: Checked, right: Checked) -> Checked:
    """Return a comparison: ``=``, ``<>``, ``<``, ``<=``, ``>``, ``>=``, ``<=>``.

    Raises UnsupportedExpressionError.
    """
    found = comparable((left, right), ordered=sign in _ORDERS)
    one, other = found.values
    if sign == "<=>":
        # MySQL 5.6 returns NULL instead of 0.
        sql = f"(({one.sql} = {other.sql}) IS TRUE OR ({one.sql} IS NULL AND {other.sql} IS NULL))"
        return Checked(BOOLEAN, Call("same", (one.call, other.call)), sql)
    operation = f"padded {sign}" if found.padded else sign
    return Checked(
        BOOLEAN, Call(operation, (one.call, other.call)), f"({one.sql} {sign} {other.sql})"
    )


def comparable(values: Sequence[Checked], *, ordered: bool) -> Comparable:
    """Convert the values of one comparison; ``ordered``: whether it compares their order.

    Their ``sql`` is unchanged, except for literal texts, which get the charset of the comparison.
    Raises UnsupportedExpressionError.
    """
    typed = [v for v in values if v.text is None and v.type.kind is not Kind.NULL]
    kinds = {value.type.kind for value in typed}
    for value in typed:
        if value.type.kind is Kind.OTHER:
            raise UnsupportedExpressionError(value.type.why)
    if not typed:
        if any(value.text is not None for value in values):
            raise UnsupportedExpressionError(
                "to order two texts, one of them must be a column, whose collation counts"
            )
        return Comparable(tuple(values))
    if all(value.type.number for value in typed):
        return Comparable(_numbers(values, typed))
    if kinds == {Kind.TEXT}:
        return _texts(values, typed, ordered=ordered)
    if kinds <= _MOMENTS:
        return Comparable(_moments(values, kinds))
    if kinds == {Kind.BINARY}:
        return Comparable(tuple(map(_in_bytes, values)))
    if kinds == {Kind.TIMESTAMP}:
        return Comparable(tuple(map(_in_utc, values)))
    if kinds == {Kind.TIME}:
        return Comparable(tuple(map(_time, values)))
    if Kind.YEAR in kinds and kinds <= {Kind.YEAR, Kind.INTEGER}:
        years = tuple(map(_year, values))
        if all(v.type.kind in (Kind.YEAR, Kind.NULL) or v.number in _YEARS for v in years):
            return Comparable(years)
        raise UnsupportedExpressionError(
            "a YEAR can be compared with a year from 1901 to 2155, or another YEAR"
        )
    names = " and ".join(sorted(str(kind) for kind in kinds))
    raise UnsupportedExpressionError(
        f"{names} can't be compared here: the server would convert them, and some values would not"
        " be what they seem. Compare values of one type (for the bytes of a text, CAST(… AS"
        " BINARY))"
    )


def bound(value: Checked, collation: Collation) -> Checked:
    """Return a literal text in the charset in which it is compared.

    Raises UnsupportedExpressionError.
    """
    if value.text is None:
        return value
    try:
        encoded = value.text.encode(collation.codec)
    except UnicodeEncodeError as error:
        raise UnsupportedExpressionError(
            f"{value.text!r} has characters that do not exist in the charset {collation.charset},"
            " so it is equal to no value of the column"
        ) from error
    sql = f"_{collation.charset} x'{encoded.hex()}'"
    return replace(value, type=ValueType(Kind.TEXT, collation=collation), sql=sql, text=None)


def bound_to_literal(value: Checked, collation: Collation) -> Checked:
    """Return a literal text for a collation that is known only for plain ASCII.

    Raises UnsupportedExpressionError.
    """
    if collation.kind and value.text is not None and not _PRINTABLE.match(value.text):
        raise UnsupportedExpressionError(
            f"the task does not know which texts {collation.name} takes for equal to"
            f" {value.text!r}: it compares only plain ASCII without control characters. Compare"
            f" the characters themselves: … COLLATE {collation.charset}_bin"
        )
    return bound(value, collation)


def _numbers(values: Sequence[Checked], typed: Sequence[Checked]) -> tuple[Checked, ...]:
    numeric = [_as_number(value, typed) for value in values]
    doubles = [value for value in typed if value.type.kind is Kind.DOUBLE]
    if not doubles:
        if len(values) > 2:
            check_signs(numeric, "IN or BETWEEN")
        return on_one_scale(numeric)
    if len(values) > 2 and (len(doubles) < len(typed) and doubles[0] is not values[0]):
        raise UnsupportedExpressionError(
            "a DOUBLE and exact numbers together: servers round them differently. Write several"
            " comparisons"
        )
    return tuple(map(as_double, numeric))


def check_signs(numeric: Sequence[Checked], where: str) -> None:
    """Refuse signed and unsigned whole numbers together in a list, or in a CASE.

    MySQL treats -1 as 18446744073709551615 there. Raises UnsupportedExpressionError.
    """
    negative = any(v.number is not None and v.number < 0 for v in numeric)
    whole = [v for v in numeric if v.type.kind is Kind.INTEGER]
    signs = {v.type.unsigned for v in whole if v.number is None or v.type.unsigned}
    if len(signs) > 1 or (True in signs and negative):
        raise UnsupportedExpressionError(
            f"signed and unsigned numbers together in {where}: servers compare them differently."
            " Write several comparisons"
        )


def _as_number(value: Checked, typed: Sequence[Checked]) -> Checked:
    """Return a whole number in quotes as a DOUBLE, which is exact for 15 digits."""
    if value.text is None:
        return value
    if _SHORT_NUMBER.match(value.text) and all(v.type.kind is Kind.INTEGER for v in typed):
        return whole_number(int(value.text))
    raise UnsupportedExpressionError(
        f"the text {value.text!r} and a number: write the number without quotes (texts of up to 15"
        " digits can be compared with whole numbers)"
    )


def _texts(values: Sequence[Checked], typed: Sequence[Checked], *, ordered: bool) -> Comparable:
    collations = [value.type.collation for value in typed]
    collation = collations[0]
    assert collation is not None
    if any(other != collation for other in collations):
        raise UnsupportedExpressionError(
            "texts of different collations; give one of them the other's: … COLLATE"
            f" {collation.charset}_bin"
        )
    if collation.kind and ordered:
        raise UnsupportedExpressionError(
            f"the order of texts by {collation.name} is unknown to the task, which only compares"
            " for equality with plain ASCII. Order by characters: … COLLATE"
            f" {collation.charset}_bin"
        )
    if len(typed) > 1 and (collation.kind or any(value.type.cased for value in typed)):
        raise UnsupportedExpressionError(
            f"by {collation.name}, and after LOWER and UPPER, a text can be compared only with a"
            " plain ASCII text in quotes. Compare the characters: … COLLATE"
            f" {collation.charset}_bin"
        )
    cased = any(value.type.cased for value in typed)
    keyed = []
    for value in values:
        if cased and value.text is not None and not value.text.isascii():
            raise UnsupportedExpressionError(
                "LOWER and UPPER are supported only for plain ASCII letters"
            )
        one = bound_to_literal(value, collation)
        keyed.append(replace(one, call=_text_key(one.call, collation, ordered=ordered)))
    return Comparable(tuple(keyed), padded=ordered and collation.pads)


def _text_key(call: Call, collation: Collation, *, ordered: bool) -> Call:
    if collation.kind:
        return Call("folded", (call,), (collation.kind, int(collation.pads)))
    if ordered:
        return Call("encoded", (call,), (collation.codec,))
    return Call("unpadded", (call,)) if collation.pads else call


def _in_bytes(value: Checked) -> Checked:
    if value.text is None:
        return value
    if not value.text.isascii():
        raise UnsupportedExpressionError(
            f"the bytes of {value.text!r} depend on the session's charset: write them as x'…'"
        )
    digits = value.text.encode().hex()
    return Checked(ValueType(Kind.BINARY), Call("bytes", (), (digits,)), f"x'{digits}'")


def _moments(values: Sequence[Checked], kinds: set[Kind]) -> tuple[Checked, ...]:
    mixed = len(kinds) > 1
    found = []
    for value in values:
        one = value if value.text is None else _moment(value.text)
        found.append(one)
        mixed = mixed or (one.type.kind not in kinds and one.type.kind is not Kind.NULL)
    if mixed and len(values) > 2 and Kind.DATE in kinds:
        raise UnsupportedExpressionError("dates and datetimes together: write several comparisons")
    return tuple(map(_at_midnight, found)) if mixed else tuple(found)


def _year(value: Checked) -> Checked:
    return whole_number(int(value.text)) if value.text and value.text.isdigit() else value


def _in_utc(value: Checked) -> Checked:
    """Return a literal moment with its offset. Raises UnsupportedExpressionError."""
    if value.text is None:
        return value
    if _WITH_OFFSET.match(value.text):
        try:
            moment = datetime.fromisoformat(value.text).astimezone(UTC).replace(tzinfo=None)
        except (ValueError, OverflowError):
            pass
        else:
            return _moment(moment.isoformat(" ", "microseconds"))
    raise UnsupportedExpressionError(
        f"{value.text!r} depends on a time zone: write it with its offset, 'YYYY-MM-DD"
        " hh:mm:ss+00:00'"
    )


def _time(value: Checked) -> Checked:
    """Return a literal time. Raises UnsupportedExpressionError unless it is in canonical form."""
    if value.text is None:
        return value
    if (match := _TIME.match(value.text)) and int(match[2]) <= _MOST_HOURS:
        sign, hours, minutes, seconds, fraction = match.groups()
        whole = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
        number = whole * 1_000_000 + int(f"{fraction or '':0<6}")
        call = Call("number", (), (-number if sign else number,))
        return Checked(ValueType(Kind.TIME), call, f"TIME'{value.text}'")
    raise UnsupportedExpressionError(f"{value.text!r} is not a time in the form '[-]hh:mm:ss[.f]'")


def _at_midnight(value: Checked) -> Checked:
    if value.type.kind is not Kind.DATE:
        return value
    return replace(value, call=Call("midnight", (value.call,)))


def _moment(text: str) -> Checked:
    """Return a literal date or moment.

    Raises UnsupportedExpressionError unless it is in canonical form.
    """
    try:
        if _DATE.match(text):
            date.fromisoformat(text)
            return Checked(ValueType(Kind.DATE), Call("text", (), (text,)), f"DATE'{text}'")
        if _DATETIME.match(text):
            moment = datetime.fromisoformat(text).isoformat(" ", "microseconds")
            return Checked(
                ValueType(Kind.DATETIME), Call("text", (), (moment,)), f"TIMESTAMP'{moment}'"
            )
    except ValueError:
        pass
    raise UnsupportedExpressionError(
        f"{text!r} is not a valid date or datetime in the form 'YYYY-MM-DD' or 'YYYY-MM-DD"
        " hh:mm:ss', with up to six digits after the seconds"
    )
