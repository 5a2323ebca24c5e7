"""Passwords: taken exactly as written, or from the environment."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping

from config.paths import select
from config.yaml_lines import Document

PATTERNS = ("target-database", "sources.*.from")
"""The sections that hold a ``password`` (`config.paths.select`)."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

_INSTEAD = (
    "write the password itself, or take it from the environment (`password: ${NAME}`), which is "
    "also how a password is given that only looks like this"
)
_MASKED = f"is a row of asterisks, which DM prints in place of a password; {_INSTEAD}"
_ENCRYPTED = f"is encrypted by DM, and only DM has the key; {_INSTEAD}"
_IV_BYTES = 16


def fill_in_passwords(document: Document, environment: Mapping[str, str]) -> None:
    """Put the values of environment variables in place of ``${NAME}``.

    A password that looks like a number to YAML is taken as written: ``0123`` is not 83. A
    variable that is not set is added to the document's problems, and so is a password that is
    none, as DM prints it.
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
                if _is_masked(written):
                    document.problems.append(document.problem(key, _MASKED))
                elif _is_encrypted(written):
                    document.problems.append(document.problem(key, _ENCRYPTED))
                continue
            value = environment.get(match[1])
            if value is None:
                message = f"the environment variable {match[1]} is not set; export it first"
                document.problems.append(document.problem(key, message))
            else:
                section["password"] = value
                document.texts[key] = value


def _is_masked(password: str) -> bool:
    return len(password) >= 6 and set(password) == {"*"}


def _is_encrypted(password: str) -> bool:
    """Whether it has the form of DM's encryption (`dm/pkg/encrypt` of pingcap/tiflow).

    That is base64 of 16 random bytes, ``@`` and the password's bytes.
    """
    try:
        content = base64.b64decode(password, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(content) > _IV_BYTES and content[_IV_BYTES : _IV_BYTES + 1] == b"@"
