"""What a comparison keeps of itself, so that one that was broken off goes on where it was.

The command keeps it in a file of this user: it writes nothing to a server.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from replicator.cache_folder import cache_folder
from replicator.pipeline.compare.findings import TargetComparison

_NAME_LIMIT = 100
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


@dataclass(slots=True)
class UnfinishedTarget:
    """The target that was being compared: what was found of it behind ``reached``, the hex digits
    of a bound of its ranges. ``plan`` is the digest of how it is compared; ``repair_begin``: bytes
    of the repair file before its first statement; ``ended``: whether all ranges are compared."""

    result: TargetComparison
    plan: str
    reached: list[str] = field(default_factory=list)
    repair_begin: int = 0
    ended: bool = False


@dataclass(slots=True)
class KeptComparison:
    """How far a comparison is. ``asked`` is the digest of what was asked for, ``repair_size`` the
    bytes of the repair file by then."""

    asked: str
    finished: list[TargetComparison] = field(default_factory=list)
    current: UnfinishedTarget | None = None
    repair_size: int = 0


_FORMAT = TypeAdapter(KeptComparison)


def as_text(kept: KeptComparison) -> str:
    """A comparison as JSON."""
    return _FORMAT.dump_json(kept).decode()


def from_text(text: str | bytes) -> KeptComparison | None:
    """The comparison that `as_text` wrote; None if it is not understood."""
    try:
        return _FORMAT.validate_json(text)
    except ValidationError:
        return None


class ComparisonKeeper(Protocol):
    """Keeps the progress of a comparison."""

    async def load(self, asked: str) -> KeptComparison | None:
        """Return what is kept of a comparison that was asked for the same; None if nothing is."""
        ...

    async def save(self, kept: KeptComparison) -> None:
        """Keep it."""
        ...

    async def remove(self) -> None:
        """Keep nothing any more."""
        ...


def digest_of(value: object) -> str:
    """A digest of plain data and functions that is the same in each process."""
    text = _ADDRESS.sub("", repr(value))
    return hashlib.sha256(text.encode()).hexdigest()


class ComparisonFile:
    """Where a task's last comparison is kept."""

    def __init__(self, task: str) -> None:
        name = quote(task, safe=" ")
        if len(name) > _NAME_LIMIT:
            name = f"{name[:_NAME_LIMIT]}~{digest_of(task)[:12]}"
        self._name = f"compare-{name}.json"

    async def load(self, asked: str) -> KeptComparison | None:
        """As `ComparisonKeeper`."""
        try:
            kept = from_text(self._path().read_bytes())
        except OSError:
            return None
        return kept if kept is not None and kept.asked == asked else None

    async def save(self, kept: KeptComparison) -> None:
        """As `ComparisonKeeper`. Without a folder to keep it in, it can't be resumed."""
        with contextlib.suppress(OSError):
            path = self._path()
            made = path.with_suffix(f".{os.getpid()}")
            # Values of rows may be in it.
            made.touch(mode=0o600)
            made.write_text(as_text(kept), encoding="utf-8")
            made.replace(path)

    async def remove(self) -> None:
        """As `ComparisonKeeper`."""
        with contextlib.suppress(OSError):
            self._path().unlink(missing_ok=True)

    def _path(self) -> Path:
        return cache_folder() / self._name
