"""Loading a task file: everything that is wrong with it is reported at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from config.dm_keys import (
    RENAMED,
    find_no_effect,
    find_unsupported,
    replace_old_spellings,
    take_out_ignored,
)
from config.exposed_files import changeable, exposed, key_files
from config.messages import message_of, path_of
from config.models import Task
from config.passwords import fill_in_passwords
from config.paths import Path
from config.problems import Problem, TaskFileError, did_you_mean
from config.references import find_unused_sources, find_wrong_references
from config.yaml_lines import MOST_BYTES, Document, read_yaml


def load_task(path: FilePath) -> Task:
    """The task that a file describes, with its sources.

    Raises TaskFileError with every problem of the file and of its source files: not readable, not
    YAML, duplicate or unknown keys, wrong values, names that lead nowhere, things that are not
    supported yet.
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
    variables = fill_in_passwords(document, os.environ, path.parent)
    ignored = take_out_ignored(document.data)
    task = _validate(document)
    for find in (find_wrong_references, find_unsupported) if files_read else (find_unsupported,):
        document.problems.extend(document.problem(at, said) for at, said in find(document.data))
    if document.problems or task is None:
        raise TaskFileError(str(path), document.problems)
    warnings = tuple(_warnings(document, ignored))
    return task.with_notes(warnings, variables, open_files)


def json_schema() -> dict[str, Any]:
    """The JSON schema of the task file, for editors; old spellings are marked deprecated."""
    schema = Task.model_json_schema(by_alias=True)
    for section in (schema, *schema["$defs"].values()):
        keys = section["properties"]
        for _, old, new in RENAMED:
            if new in keys:
                keys[old] = {**keys[new], "deprecated": True}
    return schema


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
    """Add the sources of the source files to the inline ones; False when one can't be read."""
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
    """The task, or None after its faults were added to the document's problems."""
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
            # A list whose entries are all wrong counts as empty, too.
            if found["type"] == "too_short" and any(at == p[: len(at)] != p for p in paths):
                continue
            document.problems.append(document.problem(at, message_of(found, Task)))
        return None


def _take_as_written(document: Document, error: ValidationError) -> None:
    """Where text is wanted, a number, date or truth value is text after all, as it is for DM."""
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
