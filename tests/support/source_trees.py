"""The syntax trees of source files, parsed once in a process, and what they import."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

IMPORT = re.compile(
    r"^[ \t]*(?:from ([\w.]+) import (\([^)]*\)|[^\n]+)|import ([\w.]+))", re.MULTILINE
)


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file's syntax tree, outer ones before those in them."""
    return tuple(ast.walk(tree(path)))


def module_name(path: Path, root: Path) -> str:
    """The name by which a file below `root` is imported; of an `__init__.py`, its package."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, modules: Collection[str]) -> Iterator[str]:
    """Yield those of `modules` that a file imports, anywhere in it.

    The text is searched, not parsed: a map of all imports then takes a second.
    """
    for package, names, module in IMPORT.findall(path.read_text(encoding="utf-8")):
        assert not package.startswith("."), f"{path}: a relative import of {package}"
        for name in re.findall(r"\w+", re.sub(r"\bas \w+", "", names)):
            submodule = f"{package}.{name}"
            if submodule in modules:
                yield submodule
            elif package in modules:
                yield package
        if module in modules:
            yield module
