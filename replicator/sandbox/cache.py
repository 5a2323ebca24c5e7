"""Folders that are made once per machine and user: data folders, the unpacked MySQL 5.6."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path


def cache_root() -> Path:
    """``$XDG_CACHE_HOME/replicator``, or ``~/.cache/replicator``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "replicator"


def cached_folder(key: str, build: Callable[[Path], None]) -> Path:
    """The folder of that key; `build` fills it, given an empty folder, if it is not there yet.

    Processes that want the same key at the same time wait for the one that builds. A folder
    appears under its name when it is complete only; what a killed builder left is built anew.
    """
    folder = cache_root() / key
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            part = folder.with_name(f"{key}.part")
            if part.exists():
                shutil.rmtree(part)
            part.mkdir()
            build(part)
            part.rename(folder)
    return folder
