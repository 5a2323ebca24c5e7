"""Passwords that are encrypted with a key file, by Fernet of the package `cryptography`.

Fernet is AES-128 in CBC mode with an HMAC (the specification "Fernet Spec"), so a changed password
is detected. In a task file, an encrypted password has the form ``ENC(…)``.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path as FilePath

KEY_FILE_VARIABLE = "REPLICATOR_SECRET_KEY_FILE"
"""The environment variable that names the key file if the task file does not."""

_ENCRYPTED = re.compile(r"ENC\((.*)\)", re.DOTALL)


class SecretKeyError(Exception):
    """A key file that can't be used, or a password that was not encrypted with it."""


def encrypted_part(written: str) -> str | None:
    """Return the text within ``ENC(…)``; None if a password does not have this form."""
    match = _ENCRYPTED.fullmatch(written)
    return match[1].strip() if match else None


def make_key(path: FilePath) -> None:
    """Write a new key into a file that no other account can read. Raises SecretKeyError."""
    # Imported here, because no other command needs it.
    from cryptography.fernet import Fernet

    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise SecretKeyError(
            f"{path} is there already; what it has encrypted needs it: name another file"
        ) from None
    except OSError as error:
        raise SecretKeyError(f"{path} can't be written: {error.strerror}") from error
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, 0o600)
        file.write(Fernet.generate_key() + b"\n")


def encrypt(password: str, key_file: FilePath) -> str:
    """Return the encrypted form of a password for a task file. Raises SecretKeyError."""
    from cryptography.fernet import Fernet

    token = Fernet(_read_key(key_file)).encrypt(password.encode("utf-8", "surrogateescape"))
    return f"ENC({token.decode()})"


def decrypt(token: str, key_file: FilePath) -> str:
    """Return the decrypted password. Raises SecretKeyError."""
    from cryptography.fernet import Fernet, InvalidToken

    try:
        content = Fernet(_read_key(key_file)).decrypt(token.encode("ascii", "replace"))
    except InvalidToken:
        raise SecretKeyError(
            f"was not encrypted with the key in {key_file}, or was changed since; encrypt it again:"
            f" replicator encrypt --key-file {key_file}"
        ) from None
    return content.decode("utf-8", "surrogateescape")


def _read_key(path: FilePath) -> bytes:
    from cryptography.fernet import Fernet

    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            mode = found.st_mode
            key = file.read(1000).strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SecretKeyError(f"the key file {path} can't be read: {reason}") from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise SecretKeyError(
            f"the key file {path} is open to others (mode {stat.S_IMODE(mode):04o}): chmod 600"
            f" {path}, and set new passwords if others may have read it"
        )
    if found.st_uid not in (os.geteuid(), 0):
        raise SecretKeyError(
            f"the key file {path} (mode {stat.S_IMODE(mode):04o}) belongs to user {found.st_uid},"
            f" who can put another key in its place: chown {os.geteuid()} {path}"
        )
    try:
        Fernet(key)
    except ValueError:
        raise SecretKeyError(
            f"{path} holds no key; make one: replicator encrypt --new-key FILE"
        ) from None
    return key
