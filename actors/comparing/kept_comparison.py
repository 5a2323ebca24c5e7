"""The saved progress of a comparison, from which an interrupted comparison continues.

The command saves it in a file of the user, since it writes nothing to a server.
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
    """The target that was being compared.

    Attributes:
        result: the result of the ranges before ``reached``.
        plan: the digest of the comparison plan.
        reached: the upper bound of the last range, in hex digits.
        repair_begin: bytes of the repair file before the first statement for this target.
        ended: whether all ranges are compared.
    """

    result: TargetComparison
    plan: str
    reached: list[str] = field(default_factory=list)
    repair_begin: int = 0
    ended: bool = False


@dataclass(slots=True)
class KeptComparison:
    """The progress of a comparison.

    Attributes:
        asked: the digest of the request.
        finished: the results of the targets that are compared.
        current: the target that is being compared.
        repair_size: the bytes of the repair file so far.
    """

    asked: str
    finished: list[TargetComparison] = field(default_factory=list)
    current: UnfinishedTarget | None = None
    repair_size: int = 0


_FORMAT = TypeAdapter(KeptComparison)


def as_text(kept: KeptComparison) -> str:
    """Return a comparison as JSON."""
    return _FORMAT.dump_json(kept).decode()


def from_text(text: str | bytes) -> KeptComparison | None:
    """Return the comparison that `as_text` wrote.

    Return None if another version of this program wrote it.
    """
    try:
        return _FORMAT.validate_json(text)
    except ValidationError:
        return None


class ComparisonKeeper(Protocol):
    """Saves the progress of a comparison."""

    async def load(self, asked: str) -> KeptComparison | None:
        """Return the saved comparison; None if there is none for the same request."""
        ...

    async def save(self, kept: KeptComparison) -> None:
        """Save the progress."""
        ...

    async def remove(self) -> None:
        """Remove the saved progress."""
        ...


def digest_of(value: object) -> str:
    """Return a digest of plain data and functions that is the same in each process."""
    text = _ADDRESS.sub("", repr(value))
    return hashlib.sha256(text.encode()).hexdigest()


class ComparisonFile:
    """The file with the progress of a task's last comparison."""

    def __init__(self, task: str) -> None:
        name = quote(task, safe=" ")
        if len(name) > _NAME_LIMIT:
            name = f"{name[:_NAME_LIMIT]}~{digest_of(task)[:12]}"
        self._name = f"compare-{name}.json"

    async def load(self, asked: str) -> KeptComparison | None:
        """Read the file, as `ComparisonKeeper.load`."""
        try:
            kept = from_text(self._path().read_bytes())
        except OSError:
            return None
        return kept if kept is not None and kept.asked == asked else None

    async def save(self, kept: KeptComparison) -> None:
        """Write the file, as `ComparisonKeeper.save`.

        Without a folder for the file, the comparison can't be resumed.
        """
        with contextlib.suppress(OSError):
            path = self._path()
            made = path.with_suffix(f".{os.getpid()}")
            # The file may have values of rows.
            made.touch(mode=0o600)
            made.write_text(as_text(kept), encoding="utf-8")
            made.replace(path)

    async def remove(self) -> None:
        """Remove the file, as `ComparisonKeeper.remove`."""
        with contextlib.suppress(OSError):
            self._path().unlink(missing_ok=True)

    def _path(self) -> Path:
        return cache_folder() / self._name
