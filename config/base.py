"""What all sections of the task file have in common."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, model_validator


def hyphenated(name: str) -> str:
    """The key of a field: ``target_schema`` is ``target-schema`` in the file."""
    return name.replace("_", "-")


class Section(BaseModel):
    """A section of the task file: frozen, strict about keys; a key without a value is not given."""

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
    """The keys of a section as written in the file, each with the name of its field."""
    return {field.alias or name: name for name, field in section.model_fields.items()}
