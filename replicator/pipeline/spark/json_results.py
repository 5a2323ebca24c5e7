"""The answers of tasks as JSON, read by the expected types, so that nothing in them can run.

A dataclass or a named tuple is the list of its fields, a mapping the list of its pairs, an enum its
value, and bytes are text in Latin-1. A pickle would be simpler, but reading it can run any code,
and someone else may control the executors.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, SupportsIndex, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from pyspark.errors import PySparkException

Value = TypeVar("Value")
_Reader = Callable[[Any], Any]


class AnswerError(PySparkException):
    """A task has returned an answer of another type than requested."""


def to_json(value: object, *, without: frozenset[str] = frozenset()) -> bytes:
    """Return a value as JSON for `from_json`, ``without`` some of its fields."""
    if without:
        value = _values(value, without)
    return json.dumps(value, default=_plain, separators=(",", ":")).encode("ascii")


def from_json(kind: type[Value], data: bytes, **known: object) -> Value:
    """Return the value of this type that `to_json` has converted.

    ``known``: the fields that were left out. Raises AnswerError for another type.
    """
    as_key = cast("Hashable", kind)
    try:
        parsed = json.loads(data)
        if known:
            made = _fields_of(as_key, frozenset(known))(parsed)
            return kind(**made, **known)
        return cast("Value", _reader(as_key)(parsed))
    except (ValueError, TypeError, RecursionError) as error:
        raise AnswerError(f"a task has answered what is no {kind.__name__}: {error}") from error


def _plain(value: object) -> object:
    """Return the JSON value for a value of unknown type."""
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if is_dataclass(value):
        return _values(value, frozenset())
    if isinstance(value, SupportsIndex):
        # An integer of numpy.
        return value.__index__()
    raise TypeError(f"{value!r} can't be told to the driver")


def _values(value: Any, without: frozenset[str]) -> list[object]:
    """Return the values of a dataclass, with mappings as pairs: keys of JSON objects are texts."""
    found = (getattr(value, field.name) for field in fields(value) if field.name not in without)
    return [_paired(one) for one in found]


def _paired(value: object) -> object:
    if isinstance(value, Mapping):
        return [(key, _paired(one)) for key, one in value.items()]
    return value


@cache
def _reader(kind: Any) -> _Reader:
    """Return a function that reads values of a type.

    It raises ValueError or TypeError for others.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in (int, str):
        return lambda parsed: _checked(parsed, kind)
    if kind is bytes:
        return lambda parsed: _checked(parsed, str).encode("latin-1")
    if origin in (Union, UnionType):
        (one,) = (argument for argument in arguments if argument is not NoneType)
        read = _reader(one)
        return lambda parsed: None if parsed is None else read(parsed)
    if origin in (tuple, list):
        return _sequence(origin, arguments)
    if origin in (dict, Mapping):
        return _mapping(dict, arguments)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return lambda parsed: kind(_checked(parsed, str))
    if isinstance(kind, type) and issubclass(kind, tuple):
        parts = _several(tuple(get_type_hints(kind).values()))
        return lambda parsed: kind(*parts(parsed))
    if is_dataclass(kind):
        make = cast("Callable[..., object]", kind)
        own = _fields_of(cast("Hashable", kind), frozenset())
        return lambda parsed: make(**own(parsed))
    raise TypeError(f"{kind} is no type that tasks answer with")


@cache
def _fields_of(kind: Any, without: frozenset[str]) -> Callable[[object], dict[str, object]]:
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind) if field.name not in without]
    read = _several(tuple(hints[name] for name in names))
    return lambda parsed: dict(zip(names, read(parsed), strict=True))


def _sequence(made: Callable[[Iterable[Any]], Any], arguments: tuple[Any, ...]) -> _Reader:
    if made is tuple and arguments[1:] != (...,):
        return _several(arguments)
    read = _reader(arguments[0])
    return lambda parsed: made(map(read, _checked(parsed, list)))


def _mapping(made: Callable[[dict[Any, Any]], Any], arguments: tuple[Any, ...]) -> _Reader:
    pair = _several(arguments)
    return lambda parsed: made(dict(map(pair, _checked(parsed, list))))


def _several(kinds: tuple[Any, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if set(kinds) == {int}:
        return lambda parsed: _integers(parsed, len(kinds))
    readers = [_reader(kind) for kind in kinds]

    def read(parsed: Any) -> tuple[Any, ...]:
        values = _checked(parsed, list)
        return tuple(one(value) for one, value in zip(readers, values, strict=True))

    return read


def _integers(parsed: Any, count: int) -> tuple[int, ...]:
    """Return ``count`` integers, read without a reader for each: there are many watermarks."""
    if len(_checked(parsed, list)) != count or any(type(value) is not int for value in parsed):
        raise ValueError(f"{parsed!r} is not {count} whole numbers")
    return tuple(parsed)


def _checked(parsed: Any, kind: type[Value]) -> Value:
    if type(parsed) is not kind:
        raise ValueError(f"{parsed!r} is no {kind.__name__}")
    return parsed
