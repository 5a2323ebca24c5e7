"""The user's folder for files that are made once on a host and used by all tasks on it."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path


def cache_folder() -> Path:
    """Return the first usable folder; create it if it does not exist. Raises OSError.

    Whoever can write to the folder could make us run any code, so only we may have access to it.
    """
    for folder in _candidates():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = folder.lstat()
            if (
                stat.S_ISDIR(found.st_mode)
                and found.st_uid == os.geteuid()
                and not stat.S_IMODE(found.st_mode) & 0o022
                and os.access(folder, os.W_OK)
            ):
                return folder
        except OSError:
            continue
    raise OSError("there is no folder to keep anything in")


def _candidates() -> Iterator[Path]:
    given = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):
        yield Path(given, "replicator")
    with contextlib.suppress(RuntimeError):
        yield Path.home() / ".cache" / "replicator"
    yield Path(tempfile.gettempdir(), f"replicator-cache-{os.geteuid()}")
