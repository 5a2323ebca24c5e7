"""Converts frozen dataclasses to JSON values and back: the form in which the status is sent.

pydantic is not used, because building its models for all these classes takes longer than the rest
of `replicator status`, which users run often.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")

_AS_THEY_ARE = frozenset({NoneType, str, int, float, bool})
"""Types that need no conversion. Most values of a status, which can have thousands, are of
these."""


class ShapeError(Exception):
    """A value does not have the expected form.

    The message says where, and which form is expected.
    """


def plain(value: object) -> Any:
    """Return a dataclass and all its values as dictionaries, lists, texts, numbers and None.

    Times are UTC in ISO 8601.
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    names, values_of = _reading(cast("Any", type(value)))
    return {
        name: found if type(found) in _AS_THEY_ARE else plain(found)
        for name, found in zip(names, values_of(value), strict=True)
    }


def shaped(kind: type[T], values: object, place: str = "") -> T:
    """Return the dataclass that the values of `plain` describe; unknown fields are ignored.

    ``place`` is the place of the values, as ``field.field``. Raises ShapeError.
    """
    return cast("T", _dataclass(kind, values, place))


def _dataclass(kind: type[Any], values: object, place: str) -> Any:
    if not isinstance(values, Mapping):
        raise ShapeError(f"{place or 'all of it'}: not an object")
    found = {}
    for name, (field, wanted) in _fields(kind).items():  # type: ignore[arg-type]
        inner = f"{place}.{name}" if place else name
        if name in values:
            found[name] = _value(wanted, values[name], inner)
        elif field.default is MISSING:
            raise ShapeError(f"{inner}: it is missing")
    return kind(**found)


@cache
def _reading(kind: type[Any]) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    names = tuple(field.name for field in fields(kind))
    if len(names) > 1:
        return names, attrgetter(*names)
    return names, lambda value: tuple(getattr(value, name) for name in names)


@cache
def _fields(kind: type[Any]) -> dict[str, tuple[Field[Any], Any]]:
    hints = get_type_hints(kind)
    return {field.name: (field, hints[field.name]) for field in fields(kind)}


def _value(wanted: Any, value: object, place: str) -> Any:
    arguments = get_args(wanted)
    match get_origin(wanted) or wanted:
        case origin if origin in (UnionType, Union):
            if value is None:
                return None
            [other] = [argument for argument in arguments if argument is not NoneType]
            return _value(other, value, place)
        case origin if origin is tuple:
            if not isinstance(value, list | tuple):
                raise ShapeError(f"{place}: not a list")
            return tuple(
                _value(arguments[0], item, f"{place}.{number}") for number, item in enumerate(value)
            )
        case origin if origin is Literal:
            if value not in arguments:
                raise ShapeError(f"{place}: {value!r} is none of {', '.join(arguments)}")
            return value
        case origin if origin in _SCALARS:
            return _scalar(origin, value, place)
    return _dataclass(wanted, value, place)


_SCALARS: dict[type[Any], tuple[str, Callable[[Any], bool]]] = {
    str: ("a text", lambda v: isinstance(v, str)),
    bool: ("true or false", lambda v: isinstance(v, bool)),
    int: ("a whole number", lambda v: isinstance(v, int) and not isinstance(v, bool)),
    float: ("a number", lambda v: isinstance(v, int | float) and not isinstance(v, bool)),
    datetime: ("a time", lambda v: isinstance(v, str)),
}


def _scalar(wanted: type[Any], value: Any, place: str) -> Any:
    name, fits = _SCALARS[wanted]
    if not fits(value):
        raise ShapeError(f"{place}: {value!r} is not {name}")
    if wanted is datetime:
        try:
            return datetime.fromisoformat(value)
        except ValueError as error:
            raise ShapeError(f"{place}: {value!r} is not {name}") from error
    return wanted(value)
