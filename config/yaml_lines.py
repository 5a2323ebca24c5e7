"""Reads YAML with the file, line and written text of each value; duplicate keys are errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import yaml

from config.paths import Path, dotted
from config.problems import Problem

_T = TypeVar("_T")

_NAMED = re.compile(
    r"(found undefined alias|.*found undefined tag handle|could not determine a constructor for the"
    r" tag|found duplicate anchor) "
)
"""The words of PyYAML before it quotes a name from the file."""


MOST_BYTES = 2 * 1024 * 1024
"""Maximum size of a file in bytes."""

MOST_VALUES = 50_000
"""Maximum number of values of a file, with its aliases expanded."""

MOST_LEVELS = 100
"""Maximum nesting depth, including nesting through aliases."""

LONGEST_WORD = 1000
"""Maximum length of text that may be a number, a date or a truth value; longer text stays text."""

_MERGE = "tag:yaml.org,2002:merge"


class LimitExceededError(yaml.MarkedYAMLError):
    """The file exceeds a limit on nesting, merged values or length."""

    def __init__(self, problem: str, at: yaml.Node | yaml.Event) -> None:
        mark = at.start_mark
        known = mark if isinstance(mark, yaml.error.Mark) else None
        super().__init__(problem=problem, problem_mark=known)


class BoundedLoader(yaml.SafeLoader):
    """Composes nodes of at most `MOST_LEVELS`, and limits the expansion of merge keys.

    With aliases or merge keys, a few lines can stand for billions of values ("billion laughs"), and
    PyYAML has no limit on deep nesting and long numbers.

    Raises LimitExceededError, and the errors of PyYAML.
    """

    def __init__(self, stream: bytes) -> None:
        super().__init__(stream)
        self._levels = 0
        self._merging: set[int] = set()

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose the next node and all nodes below it."""
        self._levels += 1
        if self._levels > MOST_LEVELS:
            said = f"nested too deeply: more than {MOST_LEVELS} levels"
            raise LimitExceededError(said, self.peek_event())  # type: ignore[no-untyped-call]
        try:
            return super().compose_node(parent, index)
        finally:
            self._levels -= 1

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Expand the merge keys of a mapping. Of several equal keys, the last one counts."""
        if id(node) in self._merging or all(key.tag != _MERGE for key, _ in node.value):
            return
        self._merging.add(id(node))
        try:
            entries = 0
            for below in _merged(node):
                self.flatten_mapping(below)
                entries += len(below.value)
                if entries > MOST_VALUES:
                    raise LimitExceededError(
                        f"more than {MOST_VALUES:,} values by merge keys", node
                    )
            super().flatten_mapping(node)
        finally:
            self._merging.remove(id(node))
        last = {
            (key.tag, key.value if isinstance(key, yaml.ScalarNode) else id(key)): (key, value)
            for key, value in node.value
        }
        node.value = list(last.values())


def _merged(node: yaml.MappingNode) -> Iterator[yaml.MappingNode]:
    for key, value in node.value:
        if key.tag == _MERGE:
            sections = value.value if isinstance(value, yaml.SequenceNode) else [value]
            yield from (one for one in sections if isinstance(one, yaml.MappingNode))


@dataclass(frozen=True, slots=True)
class KeyLocation:
    """The place of a key: file, line (from 1), and the key as written."""

    file: str
    line: int
    key: str


@dataclass
class Document:
    """A YAML file as plain data, with the place and the written text of each value.

    Attributes:
        data: the values; None if the file could not be read.
        places: the place of each key.
        texts: the written text of each scalar except null. It is needed because YAML reads some
            words that are meant as text as numbers, truth values or dates (``+10:00`` is 600).
        problems: errors of the YAML itself.
    """

    file: str
    data: object = None
    places: dict[Path, KeyLocation] = field(default_factory=dict)
    texts: dict[Path, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def place(self, path: Path) -> KeyLocation:
        """Return the place of a value; for a missing value, the line of the section around it."""
        for length in range(len(path), 0, -1):
            known = self.places.get(path[:length])
            if known is not None:
                rest = path[length:]
                key = dotted((known.key, *rest)) if known.key else dotted(rest)
                return KeyLocation(known.file, known.line, key)
        return KeyLocation(self.file, 1, dotted(path))

    def problem(self, path: Path, message: str) -> Problem:
        """Return a problem with the value at a path."""
        place = self.place(path)
        return Problem(place.file, place.line, place.key, message)

    def copy_places(self, old: Path, new: Path) -> None:
        """Give the values below ``new`` the places of those below ``old``, for their problems."""
        _copy(self.places, old, self.places, new)
        _copy(self.texts, old, self.texts, new)

    def adopt(self, path: Path, other: Document) -> None:
        """Give the values below a path the places that ``other`` has for them."""
        self.places[path] = KeyLocation(other.file, 1, "")
        _copy(other.places, (), self.places, path)
        _copy(other.texts, (), self.texts, path)


def _copy(source: dict[Path, _T], old: Path, target: dict[Path, _T], new: Path) -> None:
    for path, value in list(source.items()):
        if path[: len(old)] == old:
            target[(*new, *path[len(old) :])] = value


def read_yaml(file: str, content: bytes) -> Document:
    """Read one YAML document. Errors are in the document's ``problems``; none is raised."""
    document = Document(file)
    if len(content) > MOST_BYTES:
        message = f"has more than {MOST_BYTES // 1024**2} MiB: no task file is that large"
        document.problems.append(Problem(file, 0, "", message))
        return document
    try:
        loader = BoundedLoader(content)
    except yaml.YAMLError as error:
        document.problems.append(_syntax_problem(file, error))
        return document
    try:
        node = loader.get_single_node()
        if node is not None:
            document.data = _DocumentReader(document, loader).value(node, ())
    except yaml.YAMLError as error:
        document.problems.append(_syntax_problem(file, error))
    except RecursionError:
        document.problems.append(Problem(file, 0, "", "not valid YAML: nested too deeply"))
    finally:
        loader.dispose()
    return document


class _DocumentReader:
    """Turns the nodes of one document into plain data and records their places."""

    def __init__(self, document: Document, loader: BoundedLoader) -> None:
        self._document = document
        self._loader = loader
        self._open: list[yaml.Node] = []
        self._values = 0

    def value(self, node: yaml.Node, path: Path) -> object:
        self._values += 1
        if self._values > MOST_VALUES:
            said = f"more than {MOST_VALUES:,} values, with aliases written out"
            raise LimitExceededError(said, self._open[1] if len(self._open) > 1 else node)
        if len(self._open) > MOST_LEVELS:
            raise LimitExceededError(f"nested too deeply: more than {MOST_LEVELS} levels", node)
        self._document.places.setdefault(path, self._place(node, path))
        if any(node is outer for outer in self._open):
            message = "a section contains itself through an alias; write it out"
            self._document.problems.append(self._document.problem(path, message))
            return None
        self._open.append(node)
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, path)
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]
            return self._scalar(node, path)
        finally:
            self._open.pop()

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, object]:
        seen: dict[str, int] = {}
        for key_node, _ in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                message = f"line {line}: a key must be a single word"
                self._document.problems.append(self._document.problem(path, message))
            elif key_node.value in seen:
                place = self._place(key_node, (*path, key_node.value))
                message = f"the key is already in line {seen[key_node.value]}; keep one of the two"
                self._document.problems.append(Problem(place.file, line, place.key, message))
            else:
                seen[key_node.value] = line
        self._loader.flatten_mapping(node)  # writes out the merge key `<<`
        result: dict[str, object] = {}
        for key_node, value_node in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                below = (*path, key_node.value)
                self._document.places[below] = self._place(key_node, below)
                result[key_node.value] = self.value(value_node, below)
        return result

    def _scalar(self, node: yaml.Node, path: Path) -> object:
        if len(node.value) > LONGEST_WORD:
            self._document.texts[path] = node.value
            return node.value
        try:
            value: object = self._loader.construct_object(node)
        except (ValueError, KeyError, AttributeError):
            # It has the form or the tag of a date or a number, but is not a valid one, so it is
            # text.
            value = node.value
        if value is not None:
            self._document.texts[path] = node.value
        return value

    def _place(self, node: yaml.Node, path: Path) -> KeyLocation:
        return KeyLocation(self._document.file, node.start_mark.line + 1, dotted(path))


def _syntax_problem(file: str, error: yaml.YAMLError) -> Problem:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        said = " ".join(part for part in (error.context, error.problem) if part)
        # The word that follows is from the file, and may be a password.
        if named := _NAMED.match(said):
            said = f"{named[1]}; put a value that begins with `*`, `&` or `!` in quotes"
        column = f" (column {mark.column + 1})" if mark else ""
        return Problem(file, mark.line + 1 if mark else 0, "", f"not valid YAML: {said}{column}")
    said = " ".join(str(error).split())
    return Problem(file, 0, "", f"not valid YAML: {said}")
