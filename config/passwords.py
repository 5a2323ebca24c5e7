"""Passwords: in plain text, encrypted, from the environment, or from a separate file."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath

from config.paths import Path, select
from config.secret_key import KEY_FILE_VARIABLE, SecretKeyError, decrypt, encrypted_part
from config.yaml_lines import Document

PATTERNS = ("target-database", "sources.*.from")
"""The sections that have a ``password`` (`config.paths.select`)."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

_INSTEAD = (
    "write the password itself, take it from a file (`password-file: FILE`) or from the environment"
    " (`password: ${NAME}`), or encrypt it (`replicator encrypt`); from a file or the environment"
    " it is taken as it is, even if it looks like this"
)
_MASKED = f"is a row of asterisks, which DM prints in place of a password; {_INSTEAD}"
_ENCRYPTED = f"is encrypted by DM, and only DM has the key; {_INSTEAD}"
_IV_BYTES = 16


class WrongPasswordError(Exception):
    """A password that can't be obtained; the message says why, and gives a remedy."""


def fill_in_passwords(
    document: Document, environment: Mapping[str, str], folder: FilePath
) -> tuple[str, ...]:
    """Replace the references to passwords by the passwords; return the variables that were used.

    ``folder`` is the folder of the task file, where relative paths start. A password that looks
    like a number to YAML is taken as written: ``0123`` is not 83. A password that can't be obtained
    is added to the document's problems, and so is DM's placeholder for a password.
    """
    variables = []
    for key, section in _sections(document):
        named = document.texts.get((*key, "password-file"), "")
        written = document.texts.get((*key, "password"), "")
        at = (*key, "password-file" if named else "password")
        try:
            if named:
                if written:
                    raise WrongPasswordError("stands beside `password`; keep one of the two")
                password = _from_file(folder / named)
            elif match := _VARIABLE.fullmatch(written):
                password = _from_environment(match[1], environment)
                variables.append(match[1])
            else:
                password = _as_written(document, written, environment, folder)
        except (WrongPasswordError, SecretKeyError) as error:
            document.problems.append(document.problem(at, str(error)))
            continue
        if named or (*key, "password") in document.texts:
            section["password"] = document.texts[(*key, "password")] = password
    return tuple(variables)


def variables_of(document: Document) -> tuple[str, ...]:
    """Return the environment variables that passwords of a document are taken from."""
    texts = (document.texts.get((*key, "password"), "") for key, _ in _sections(document))
    return tuple(match[1] for text in texts if (match := _VARIABLE.fullmatch(text)))


def _sections(document: Document) -> Iterator[tuple[Path, dict[str, object]]]:
    for pattern in PATTERNS:
        for path, section in select(document.data, pattern):
            if isinstance(section, dict):
                yield path, section


def _from_environment(name: str, environment: Mapping[str, str]) -> str:
    value = environment.get(name)
    if value is None:
        raise WrongPasswordError(f"the environment variable {name} is not set; export it first")
    return value


def _from_file(path: FilePath) -> str:
    """Return the content, without a byte order mark and the line end that editors add."""
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise WrongPasswordError(f"{path} can't be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise WrongPasswordError(f"{path} is not text in UTF-8") from None
    except ValueError as error:  # no name of a file
        raise WrongPasswordError(f"{path} can't be read: {error}") from error
    password = content.removesuffix("\n").removesuffix("\r")
    if not password:
        raise WrongPasswordError(f"{path} is empty; write the password into it")
    if "\n" in password:
        raise WrongPasswordError(f"{path} has several lines; it must hold the password alone")
    return password


def _as_written(
    document: Document, written: str, environment: Mapping[str, str], folder: FilePath
) -> str:
    token = encrypted_part(written)
    if token is not None:
        return decrypt(token, _key_file(document, environment, folder))
    if _is_masked(written):
        raise WrongPasswordError(_MASKED)
    if _is_encrypted(written):
        raise WrongPasswordError(_ENCRYPTED)
    return written


def _key_file(document: Document, environment: Mapping[str, str], folder: FilePath) -> FilePath:
    named = document.texts.get(("secret-key-file",), "")
    if named:
        return folder / named
    if environment.get(KEY_FILE_VARIABLE):
        return FilePath(environment[KEY_FILE_VARIABLE])
    raise WrongPasswordError(
        "is encrypted: name the file with the key in `secret-key-file` of the task file, or in the"
        f" environment variable {KEY_FILE_VARIABLE}"
    )


def _is_masked(password: str) -> bool:
    return len(password) >= 6 and set(password) == {"*"}


def _is_encrypted(password: str) -> bool:
    """Return whether the password has the form of DM's encryption.

    This form (`dm/pkg/encrypt` of pingcap/tiflow) is base64 of 16 random bytes, ``@`` and the
    password's bytes.
    """
    try:
        content = base64.b64decode(password, validate=True)
    except (binascii.Error, ValueError):
        return False
    return len(content) > _IV_BYTES and content[_IV_BYTES : _IV_BYTES + 1] == b"@"
