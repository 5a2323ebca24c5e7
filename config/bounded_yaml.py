"""A YAML loader whose work is bounded, whatever a file says.

Aliases let a few lines stand for billions of values ("billion laughs"), merge keys likewise, and
PyYAML goes through deep nesting and long numbers without a limit.
"""

from __future__ import annotations

from collections.abc import Iterator

import yaml

MOST_BYTES = 2 * 1024 * 1024
"""Bytes of a file."""

MOST_VALUES = 50_000
"""Values of a file with its aliases written out."""

MOST_LEVELS = 100
"""Levels of nesting, through aliases, too."""

LONGEST_WORD = 1000
"""Characters of what may be a number, a date or a truth value; longer ones are text."""

_MERGE = "tag:yaml.org,2002:merge"


class TooMuchError(yaml.MarkedYAMLError):
    """A file that comes to more than a task file can have."""

    def __init__(self, problem: str, at: yaml.Node | yaml.Event) -> None:
        mark = at.start_mark
        known = mark if isinstance(mark, yaml.error.Mark) else None
        super().__init__(problem=problem, problem_mark=known)


class BoundedLoader(yaml.SafeLoader):
    """Composes nodes of at most `MOST_LEVELS`, and writes out merge keys of a bounded size.

    Raises TooMuchError, besides what PyYAML raises.
    """

    def __init__(self, stream: bytes) -> None:
        super().__init__(stream)
        self._levels = 0
        self._merging: set[int] = set()

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose the next node and all below it."""
        self._levels += 1
        if self._levels > MOST_LEVELS:
            said = f"nested too deeply: more than {MOST_LEVELS} levels"
            raise TooMuchError(said, self.peek_event())  # type: ignore[no-untyped-call]
        try:
            return super().compose_node(parent, index)
        finally:
            self._levels -= 1

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Write the merge keys of a mapping out; of entries with one key the last one counts."""
        if id(node) in self._merging or all(key.tag != _MERGE for key, _ in node.value):
            return
        self._merging.add(id(node))
        try:
            entries = 0
            for below in _merged(node):
                self.flatten_mapping(below)
                entries += len(below.value)
                if entries > MOST_VALUES:
                    raise TooMuchError(f"more than {MOST_VALUES:,} values by merge keys", node)
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
