"""Loads a task file, and reports all its problems at once."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from config.base import Section, homes_of, keys_of, section_at
from config.dm_keys import (
    find_no_effect,
    find_unsupported,
    replace_old_spellings,
    take_out_ignored,
)
from config.models import Task
from config.passwords import fill_in_passwords, variables_of
from config.paths import Path, select
from config.problems import Problem, TaskFileError, did_you_mean
from config.references import find_unused_sources, find_wrong_references
from config.yaml_lines import MOST_BYTES, Document, read_yaml


def load_task(path: FilePath, environment: Mapping[str, str] | None = None) -> Task:
    """Load a task file and its source files.

    ``environment`` has the variables for passwords; the default is the environment of the process.

    Raises TaskFileError with all problems of these files: unreadable files, YAML errors, duplicate
    or unknown keys, wrong values, names of missing parts, unsupported keys.
    """
    document = _read(path, str(path))
    if document.problems and document.data is None:
        raise TaskFileError(str(path), document.problems)
    if not isinstance(document.data, dict):
        problem = Problem(str(path), 1, "", "a task file is a section of `key: value` lines")
        raise TaskFileError(str(path), [problem])
    files_read = _add_source_files(document, document.data, path.parent)
    replace_old_spellings(document)
    open_files = tuple(exposed(document, path.parent))
    for at, key in key_files(document):
        if text := changeable(key):
            document.problems.append(document.problem(at, text))
    variables = fill_in_passwords(
        document, os.environ if environment is None else environment, path.parent
    )
    ignored = take_out_ignored(document.data)
    task = _validate(document)
    for find in (find_wrong_references, find_unsupported) if files_read else (find_unsupported,):
        document.problems.extend(document.problem(at, said) for at, said in find(document.data))
    if document.problems or task is None:
        raise TaskFileError(str(path), document.problems)
    warnings = tuple(_warnings(document, ignored))
    return task.with_notes(warnings, variables, open_files, str(path.absolute()))


def name_and_variables(path: FilePath) -> tuple[str, tuple[str, ...]]:
    """Return the name of the task in a file, and the variables that its passwords are taken from.

    The name is empty if the file can't be read or has no name. The rest of the file may have
    errors.
    """
    document = _read(path, str(path))
    if not isinstance(document.data, dict):
        return "", ()
    _add_source_files(document, document.data, path.parent)
    return document.texts.get(("name",), ""), variables_of(document)


def _read(path: FilePath, shown: str) -> Document:
    try:
        with path.open("rb") as file:
            document = read_yaml(shown, file.read(MOST_BYTES + 1))
    except OSError as error:
        document = Document(shown)
        similar = _similar_file(path) if isinstance(error, FileNotFoundError) else ""
        message = f"can't be read: {error.strerror}{similar}"
        document.problems.append(Problem(shown, 0, "", message))
        return document
    if document.data is None and not document.problems:
        document.problems.append(Problem(shown, 0, "", "the file is empty"))
    return document


def _similar_file(path: FilePath) -> str:
    folder = path.parent
    try:
        return did_you_mean(path.name, [entry.name for entry in folder.iterdir()])
    except OSError:  # the folder is missing as well: the first error says enough
        return ""


def _add_source_files(document: Document, data: dict[str, object], folder: FilePath) -> bool:
    """Add the sources of the source files to the inline sources.

    Return False if one can't be read.
    """
    names = data.get("source-files")
    inline = data.get("sources")
    if not isinstance(names, list) or not isinstance(inline, list | None):
        return names is None
    sources: list[object] = list(inline or [])
    complete = True
    for index, name in enumerate(names):
        at = ("source-files", index)
        if not isinstance(name, str):
            continue
        read = _read(folder / name, str(folder / name))
        if read.data is None:
            complete = False
            for problem in read.problems:
                line = f" (line {problem.line})" if problem.line else ""
                message = f"{problem.file}{line}: {problem.message}"
                document.problems.append(document.problem(at, message))
            continue
        document.problems.extend(read.problems)
        document.adopt(("sources", len(sources)), read)
        sources.append(read.data)
    if sources:
        document.places.setdefault(("sources",), document.place(("source-files",)))
        data["sources"] = sources
    return complete


def _validate(document: Document) -> Task | None:
    """Return the task, or None after adding its problems to the document."""
    try:
        return Task.model_validate(document.data)
    except ValidationError as error:
        _take_as_written(document, error)
    try:
        return Task.model_validate(document.data)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        paths = {path_of(found) for found in errors}
        for found in errors:
            at = path_of(found)
            # A list whose entries are all wrong is also reported as empty.
            if found["type"] == "too_short" and any(at == p[: len(at)] != p for p in paths):
                continue
            document.problems.append(document.problem(at, message_of(found, Task)))
        return None


def _take_as_written(document: Document, error: ValidationError) -> None:
    """Use the written text of a number, date or truth value if a key requires text, as DM does."""
    for found in error.errors(include_url=False):
        path = path_of(found)
        if found["type"] == "string_type" and path in document.texts:
            _put(document.data, path, document.texts[path])


def _put(data: Any, path: Path, value: str) -> None:
    for step in path[:-1]:
        data = data[step]
    data[path[-1]] = value


def _warnings(document: Document, ignored: list[tuple[Path, str]]) -> Iterator[Problem]:
    found = [*ignored, *find_no_effect(document.data), *find_unused_sources(document.data)]
    problems = [document.problem(at, said) for at, said in found]
    yield from sorted(problems, key=lambda p: (p.file != document.file, p.file, p.line))


_SECURITY = ("target-database.security", "sources.*.from.security")


def changeable(path: FilePath) -> str:
    """Return which other accounts may change a file, and the remedy; empty if none, or unknown."""
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
    """Return which other accounts may read a file, and the remedy; empty if none.

    A file that root owns may be readable by its group, which is the way to give an account access.
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
    """Yield a warning for each file with a secret that other accounts may read or change.

    `ssh` and the clients of the servers check key files in the same way, because the owner of a key
    file and everyone who may write to it can replace the key. The files are the task file and its
    source files if they have a password or key as plain text, password files, and the key files of
    certificates. ``document`` must be the file as written: passwords not filled in.
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
    """Yield the key files of certificates, each with its place in the task file."""
    for pattern in _SECURITY:
        for path, section in select(document.data, pattern):
            key = section.get("ssl-key") if isinstance(section, dict) else None
            if isinstance(key, str) and key:
                yield (*path, "ssl-key"), FilePath(key)


def _looked_at(path: FilePath) -> os.stat_result | None:
    try:
        return path.stat()
    except (OSError, ValueError):  # reading the file reports the error
        return None


_SECRET_KEYS = {"password", "ssl-key-bytes", "ssl-key-base64"}

_WORDS = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list: one `- value` a line, or [a, b]",
    "dict_type": "must be a section of `name: value` lines",
    "model_type": "must be a section of `key: value` lines",
    "model_attributes_type": "must be a section of `key: value` lines",
}


def path_of(error: ErrorDetails) -> Path:
    """Return the path of the value with the error."""
    return tuple(step for step in error["loc"] if step != "[key]")


def message_of(error: ErrorDetails, root: type[Section]) -> str:
    """Return the message for an error, with the nearest valid key or value if there is one."""
    kind, path = error["type"], path_of(error)
    context = error.get("ctx", {})
    if kind == "missing":
        return "is missing; it is required"
    if kind == "extra_forbidden":
        return _unknown_key(path, root)
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return _not_one_of(error, path, root)
    if kind == "string_pattern_mismatch":
        return _bad_form(str(path[-1]), str(error["input"]))
    if kind == "string_too_long":
        return f"must have at most {context['max_length']} characters{_given(error, path)}"
    if kind in ("string_too_short", "too_short"):
        return "must not be empty"
    if kind == "greater_than_equal":
        return f"must be at least {context['ge']}{_given(error, path)}"
    if kind == "less_than_equal":
        return f"must be at most {context['le']}{_given(error, path)}"
    if kind.startswith("model_"):  # the value is not shown, since it may hold a password
        return _WORDS[kind]
    if kind in _WORDS:
        return _WORDS[kind] + _given(error, path)
    return error["msg"]


def _given(error: ErrorDetails, path: Path) -> str:
    value = error["input"]
    if not _SECRET_KEYS.isdisjoint(map(str, path)):
        return ""
    if isinstance(value, dict):
        return ", not a section"
    if isinstance(value, list):
        return ", not a list"
    if value is None:
        return "; there is nothing here"
    if isinstance(value, bool):
        return f", not {str(value).lower()}"
    return f", not `{value}`"


def _unknown_key(path: Path, root: type[Section]) -> str:
    section, key = section_at(root, path[:-1]), str(path[-1])
    keys = keys_of(section) if section is not None else {}
    hint = did_you_mean(key, keys)
    homes = [] if hint else homes_of(root, key)
    if homes:
        return f"unknown key here; it belongs at `{min(homes, key=len)}`"
    if not hint:
        hint = f"; the keys here are {', '.join(keys)}" if len(keys) <= 16 else ""
    return f"unknown key{hint}"


def _not_one_of(error: ErrorDetails, path: Path, root: type[Section]) -> str:
    section = section_at(root, path[:-1])
    name = keys_of(section)[str(path[-1])] if section is not None else ""
    annotation = section.model_fields[name].annotation if section is not None else None
    choices = [str(choice) for choice in get_args(annotation)]
    shown = ", ".join(f"`{choice}`" if choice else '""' for choice in choices)
    value = error["input"]
    hint = did_you_mean(value, choices) if isinstance(value, str) else ""
    return f"must be {'one of ' if len(choices) > 1 else ''}{shown}{_given(error, path)}{hint}"


def _bad_form(key: str, value: str) -> str:
    if key == "binlog-name":
        return f"`{value}` is no binlog file; its name ends in a number, like `mysql-bin.000042`"
    return (
        f"`{value}` must have 1 to 49 characters: letters, digits, `_`, `.` and `-`,"
        " not starting with `.` or `-`"
    )
