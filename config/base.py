"""The base class of all sections of the task file, and a walk over the keys of sections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, model_validator
from pydantic.fields import FieldInfo

from config.paths import Path


def hyphenated(name: str) -> str:
    """Return the key of a field: ``target_schema`` is ``target-schema`` in the file."""
    return name.replace("_", "-")


class Section(BaseModel):
    """A section of the task file: immutable, without unknown keys.

    A key without a value is ignored.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=hyphenated,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _without_empty_keys(cls, data: object) -> object:
        if data is None:
            return {}
        if not isinstance(data, Mapping):
            return data
        known = keys_of(cls)
        return {key: value for key, value in data.items() if value is not None or key not in known}


def keys_of(section: type[Section]) -> dict[str, str]:
    """Return the keys of a section as written in the file, each with the name of its field."""
    return {field.alias or name: name for name, field in section.model_fields.items()}


_MANY: dict[object, str] = {tuple: "[]", dict: ".NAME"}


def inner_section(annotation: object) -> tuple[type[Section] | None, str]:
    """Return the section class that a type contains, if any, and how it contains it.

    The text is ``[]`` for a list of sections, ``.NAME`` for a map of them, and empty for a single
    one.
    """
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation, ""
    for argument in get_args(annotation):
        section, below = inner_section(argument)
        if section is not None:
            return section, _MANY.get(get_origin(annotation), "") + below
    return None, ""


def walk(section: type[Section], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Yield each key below a section, like ``sources[].from``, and its field."""
    for key, name in keys_of(section).items():
        field = section.model_fields[name]
        place = f"{prefix}.{key}" if prefix else key
        yield place, field
        inner, below = inner_section(field.annotation)
        if inner is not None:
            yield from walk(inner, place + below)


def section_at(root: type[Section], path: Path) -> type[Section] | None:
    """Return the section class at a path; None if there is none or its form is unknown."""
    annotation: Any = root
    for step in path:
        section, below = inner_section(annotation)
        if section is None:
            return None
        if below:
            annotation = section
            continue
        name = keys_of(section).get(str(step))
        if name is None:
            return None
        annotation = section.model_fields[name].annotation
    section, below = inner_section(annotation)
    return None if below else section


def homes_of(root: type[Section], key: str) -> list[str]:
    """Return the places where a key belongs, such as ``syncers.NAME.batch``."""
    return [place for place, _ in walk(root) if place.rpartition(".")[2] == key]
