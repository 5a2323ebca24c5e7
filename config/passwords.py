"""Passwords: taken exactly as written, or from the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping

from config.paths import select
from config.yaml_lines import Document

PATTERNS = ("target-database", "sources.*.from")
"""The sections that hold a ``password`` (`config.paths.select`)."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def fill_in_passwords(document: Document, environment: Mapping[str, str]) -> None:
    """Put the values of environment variables in place of ``${NAME}``.

    A password that looks like a number to YAML is taken as written: ``0123`` is not 83. A
    variable that is not set is added to the document's problems.
    """
    for pattern in PATTERNS:
        for path, section in select(document.data, pattern):
            if not isinstance(section, dict) or "password" not in section:
                continue
            key = (*path, "password")
            written = document.texts.get(key)
            if written is None:
                continue
            section["password"] = written
            match = _VARIABLE.fullmatch(written)
            if match is None:
                continue
            value = environment.get(match[1])
            if value is None:
                message = f"the environment variable {match[1]} is not set; export it first"
                document.problems.append(document.problem(key, message))
            else:
                section["password"] = value
                document.texts[key] = value
