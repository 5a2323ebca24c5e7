"""Of cases that differ only in the kind of server or in the mode, choose one."""

from __future__ import annotations

import shutil
import subprocess
import zlib
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable
from pathlib import Path
from typing import TypeVar

import pytest

from replicator.sandbox.server import DatabaseServer

MODES = frozenset({"", "pessimistic", "optimistic"})
MODE_PARAMETERS = frozenset({"mode", "shard_mode"})
SERVER_FIXTURES = (
    "mariadb_source",
    "mariadb_source_full",
    "mariadb11_source",
    "mysql_source",
    "mysql56_source",
    "mariadb_target",
    "mysql_target",
)


Case = TypeVar("Case")


def is_kind(parameter: str, value: object) -> bool:
    """Whether the value of a test's parameter is a kind of server or a mode of the task.

    TiDB is none: it answers otherwise than the others, so its cases are tests of their own.
    """
    if isinstance(value, type):
        return issubclass(value, DatabaseServer)
    if parameter in MODE_PARAMETERS:
        return value in MODES
    return value in SERVER_FIXTURES


def chosen(cases: Iterable[tuple[Case, Hashable]], seed: str) -> list[Case]:
    """Return one case for each key, in the given order.

    The seed and the key decide which: with another seed, other cases are chosen.
    """
    groups: defaultdict[Hashable, list[Case]] = defaultdict(list)
    for case, key in cases:
        groups[key].append(case)
    return [
        group[zlib.crc32(f"{seed} {key}".encode()) % len(group)] for key, group in groups.items()
    ]


def key_of(item: pytest.Item, long: Collection[str]) -> str:
    """Return the name of a test with the parameters that are no kinds; of a long one its file.

    Args:
        long: the names of the long tests, with their files.
    """
    name, _, _ = item.nodeid.partition("[")
    if name in long:
        return f"long: {item.path}"
    if not hasattr(item, "callspec"):
        return name
    others = {
        parameter: item.callspec.indices[parameter]
        for parameter, value in item.callspec.params.items()
        if not is_kind(parameter, value)
    }
    return f"{name} {others}"


def commit() -> str:
    """Return the commit that is checked out; "" where there is none, or no git."""
    git = shutil.which("git")
    if git is None:
        return ""
    run = subprocess.run(
        [git, "rev-parse", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout.strip()
