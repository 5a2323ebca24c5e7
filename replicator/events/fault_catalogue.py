"""The messages and remedies of faults, from the templates of `faults.yaml` and `fault_texts.yaml`.

The templates are format strings (`str.format_map`). A test renders each template, and checks that
the program sets all of its fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any

import yaml

GIVEN_REMEDIES = "{remedies}"
"""A placeholder for remedies that the program supplies, for example those of a check."""


@dataclass(frozen=True, slots=True)
class SharedText:
    """A text that several faults use; ``page`` is the wording for the page of faults."""

    text: str
    page: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """An action that resolves a fault.

    Attributes:
        template: the text of the remedy.
        condition: ``if FIELD``, ``if FIELD=VALUE`` or ``unless FIELD``; empty if the remedy always
            applies.
    """

    template: str
    condition: str = ""

    @property
    def condition_field(self) -> str:
        """The name of the field in the condition; empty without a condition."""
        return self.condition.partition(" ")[2].partition("=")[0]

    def applies(self, fields: Mapping[str, object]) -> bool:
        """Return whether the remedy applies to a fault with these fields."""
        if not self.condition:
            return True
        word, _, test = self.condition.partition(" ")
        _, _, value = test.partition("=")
        found = fields[self.condition_field]
        return (found == value if value else bool(found)) is (word == "if")

    def rendered(self, fields: Mapping[str, object]) -> tuple[str, ...]:
        """Return its text, or the remedies that the program supplies.

        The result is empty if it does not apply.
        """
        if not self.applies(fields):
            return ()
        if self.template == GIVEN_REMEDIES:
            remedies = fields["remedies"]
            assert isinstance(remedies, tuple)
            return remedies
        return (filled(self.template, fields),)


@dataclass(frozen=True, slots=True)
class FaultCase:
    """One variant of a fault.

    Attributes:
        message: what happened.
        where: the source, target, shard and position, as far as known.
        remedies: the actions that resolve the fault; one of them is enough.
        answers: the ``replicator binlog`` commands that resolve the fault's statement.
    """

    message: str
    where: str
    remedies: tuple[Remedy, ...]
    answers: tuple[str, ...]

    @property
    def fields(self) -> frozenset[str]:
        """The names of all fields that its templates and conditions use."""
        texts = (self.message, self.where, *(remedy.template for remedy in self.remedies))
        names = {name for text in texts for name in field_names(text)}
        return frozenset(names | {remedy.condition_field for remedy in self.remedies} - {""})


@dataclass(frozen=True, slots=True)
class FaultSection:
    """The entry of a fault in the catalogue.

    Attributes:
        blocks: the parts that stop until the operator has acted (``target``, ``source``, ``task``,
            or several of these with "or" between them).
        cause: the causes of the fault, for the page.
        cases: the variants of the fault by their names; a single variant has the name "".
        advice: further text for the page, besides the remedies.
    """

    blocks: str
    cause: str
    cases: Mapping[str, FaultCase]
    advice: tuple[str, ...]


def filled(template: str, fields: Mapping[str, object]) -> str:
    """Return a template with its fields replaced. Raises KeyError for a missing field."""
    return template.format_map(_FieldsAndTexts(fields))


def shared_text(name: str, **fields: object) -> str:
    """Return a text of `fault_texts.yaml` with its fields."""
    return filled(SHARED_TEXTS[name].text, fields)


def field_names(template: str) -> Iterator[str]:
    """Return the names of a template's fields, and of those in the shared texts that it uses."""
    for name in placeholders(template):
        text = SHARED_TEXTS.get(name)
        if text is None:
            yield name
        else:
            yield from field_names(text.text)


def placeholders(template: str) -> Iterator[str]:
    """Return the names of a template's fields and shared texts, without attribute access."""
    for _, name, _, _ in Formatter().parse(template):
        if name:
            yield re.split(r"[.\[]", name)[0]


class _FieldsAndTexts(dict[str, object]):
    def __missing__(self, name: str) -> str:
        return filled(SHARED_TEXTS[name].text, self)


def read_table(name: str) -> dict[str, Any]:
    """Return the contents of a YAML file in this folder."""
    # libyaml's parser takes a twelfth of the time, which every start of the program spends.
    text = Path(__file__).with_name(name).read_text("utf-8")
    table: dict[str, Any] = yaml.load(text, yaml.CSafeLoader)
    return table


def fault_section(entry: dict[str, Any]) -> FaultSection:
    """Return the section of an entry of `faults.yaml`. Raises KeyError if a key is missing."""
    cases = entry.get("cases") or {"": {}}
    return FaultSection(
        entry["blocks"],
        entry["cause"],
        {name: _case({**entry, **case}) for name, case in cases.items()},
        tuple(entry.get("advice", ())),
    )


def _case(entry: dict[str, Any]) -> FaultCase:
    remedies = tuple(
        Remedy(way) if isinstance(way, str) else Remedy(*reversed(next(iter(way.items()))))
        for way in entry["remedies"]
    )
    answers = tuple(entry.get("answers", "").split())
    return FaultCase(entry["message"], entry["where"], remedies, answers)


SHARED_TEXTS: Mapping[str, SharedText] = {
    name: SharedText(entry["text"], entry.get("page", entry["text"]))
    for name, entry in read_table("fault_texts.yaml").items()
}
"""The texts of `fault_texts.yaml` by their names."""

FAULT_SECTIONS: Mapping[str, FaultSection] = {
    event: fault_section(dict(entry))
    for events in read_table("faults.yaml").values()
    for event, entry in events.items()
}
"""The faults of `faults.yaml` by their events."""
