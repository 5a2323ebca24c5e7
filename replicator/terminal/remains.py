"""The state of a task before it is removed, and what is left afterwards, as lines."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text


def render_remains(task: str, tables: Iterable[str], positions: Iterable[tuple[str, str]]) -> Text:
    """Return the meta tables to remove, and the ``positions`` by source that only they contain."""
    lines = [f"task {task} has these meta tables:", *(f"  {name}" for name in tables)]
    saved = [f"  {source}: {position}" for source, position in positions]
    if saved:
        lines += ["they hold how far the sources are on the target, and nothing else does:", *saved]
    return Text("\n".join(lines))


def render_removed(task: str, targets: Iterable[str]) -> Text:
    """Return the result, and advice on the rows that stay. ``targets`` are names as in SQL."""
    lines = [f"task {task} is removed."]
    names = [f"  {name}" for name in targets]
    if names:
        lines += [
            "its targets stay, with their rows:",
            *names,
            "before a new full copy into them, empty them (TRUNCATE TABLE): a row that is",
            "there already is a duplicate, and one that its shard has deleted since would stay",
        ]
    return Text("\n".join(lines))
