"""Completes the commands in remedies, so that each can be typed as it is printed.

A fault does not know the name of its task, nor its task file. So it writes "`replicator stop`", and
this module adds the arguments.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

_OF_TASK = ("stop", "status", "pause", "show-ddl-locks", "resume")
"""The commands whose argument is the name of the task."""

_OF_FILE = ("run", "reload", "check", "compare", "remove")
"""The commands whose argument is the task file."""

_OVERRIDE = re.compile(r"`(?:replicator )?binlog (skip|replace|inject)`")
_COMMAND = re.compile(rf"`replicator ({'|'.join((*_OF_TASK, *_OF_FILE))})((?: --[^` ]+)*)`")
_FILE_AFTER = re.compile(r"(`replicator \w+)` TASK\.yaml\b")
_PLACEHOLDER = re.compile(r"`replicator [^`]*`")


def as_typed(way: str, name: str, file: str, overrides: Mapping[str, str]) -> str:
    """Return a remedy whose commands have their arguments.

    Args:
        name: the task's name.
        file: the path of the task file.
        overrides: the complete command for each action that helps, such as "skip".
    """
    task, path = shlex.quote(name), shlex.quote(file)

    def complete(found: re.Match[str]) -> str:
        command, options = found.groups()
        given = task if command in _OF_TASK else path
        return f"`replicator {command} {given}{options}`"

    def override(found: re.Match[str]) -> str:
        command = overrides.get(found[1])
        return f"`{command}`" if command else found[0]

    def fill(found: re.Match[str]) -> str:
        filled = re.sub(r"\bTASK\.yaml\b", lambda _: path, found[0])
        return re.sub(r"\bTASK\b", lambda _: task, filled)

    way = _FILE_AFTER.sub(r"\1 TASK.yaml`", way)
    return _PLACEHOLDER.sub(fill, _OVERRIDE.sub(override, _COMMAND.sub(complete, way)))
