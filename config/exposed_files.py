"""Who else may read or change a file with a secret in it.

As `ssh` and the servers' own clients look at key files: another account that owns a key, or may
write to it, can put its own in its place; one that may read it has it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path as FilePath

from config.paths import select
from config.yaml_lines import Document

_SECURITY = ("target-database.security", "sources.*.from.security")


def changeable(path: FilePath) -> str:
    """Who else may change a file, and what to do; empty where nobody may, or it can't be seen."""
    found = _looked_at(path)
    if found is None:
        return ""
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid not in (os.geteuid(), 0):
        return (
            f"{path} (mode {mode:04o}) belongs to user {found.st_uid}, who can put something"
            f" else in its place: chown {os.geteuid()} {path} && chmod 600 {path}"
        )
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{path} (mode {mode:04o}) can be changed by others: chmod 600 {path}"
    return ""


def readable(path: FilePath) -> str:
    """Who else may read a file, and what to do; empty where nobody may.

    A file of root may be readable by its group, which then is the way to give it to an account.
    """
    found = _looked_at(path)
    if found is None:
        return ""
    mode = stat.S_IMODE(found.st_mode)
    shut = stat.S_IRWXO if found.st_uid == 0 != os.geteuid() else stat.S_IRWXO | stat.S_IRWXG
    if not mode & shut:
        return ""
    return (
        f"{path} (mode {mode:04o}, owner {found.st_uid}) holds a secret and can be read by others:"
        f" chmod 600 {path}"
    )


def exposed(document: Document, folder: FilePath) -> Iterator[str]:
    """A warning for each file with a secret that others may read or change.

    These are the task file and its source files, where a password or key stands in them as it is,
    the password files, and the files with the keys of certificates. ``document`` is as it was
    written: passwords are not yet in place of what says where they are.
    """
    files: dict[FilePath, None] = {}
    for pattern in ("target-database", "sources.*.from"):
        for path, section in select(document.data, pattern):
            if not isinstance(section, dict):
                continue
            named, written = section.get("password-file"), document.texts.get((*path, "password"))
            if isinstance(named, str) and named:
                files[folder / named] = None
            elif written and not written.startswith(("ENC(", "${")):
                files[FilePath(document.place((*path, "password")).file)] = None
            security = section.get("security")
            if not isinstance(security, dict):
                continue
            for key in ("ssl-key-bytes", "ssl-key-base64"):
                if security.get(key):
                    files[FilePath(document.place((*path, "security", key)).file)] = None
    files |= dict.fromkeys(file for _, file in key_files(document))
    for file in files:
        if text := changeable(file) or readable(file):
            yield text


def key_files(document: Document) -> Iterator[tuple[tuple[str | int, ...], FilePath]]:
    """The files with the keys of certificates, each with its place in the task file."""
    for pattern in _SECURITY:
        for path, section in select(document.data, pattern):
            key = section.get("ssl-key") if isinstance(section, dict) else None
            if isinstance(key, str) and key:
                yield (*path, "ssl-key"), FilePath(key)


def _looked_at(path: FilePath) -> os.stat_result | None:
    try:
        return path.stat()
    except (OSError, ValueError):  # told where it is read
        return None
