"""Certificates and keys that stand in the task file itself, in PEM."""

from __future__ import annotations

import base64
import binascii
from functools import partial
from typing import Annotated

from pydantic import BeforeValidator, SecretStr

_CERTIFICATE = "-----BEGIN CERTIFICATE-----"
_KEY = "PRIVATE KEY-----"
_ENCRYPTED_KEYS = ("-----BEGIN ENCRYPTED PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED")


def _text(value: object, mark: str) -> str:
    """The text of a PEM, given as text or, as DM prints it, as a list of bytes."""
    if isinstance(value, list) and all(type(n) is int and 0 <= n < 256 for n in value):
        value = bytes(value)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str):
        raise ValueError("must be text in PEM, or a list of its bytes")
    return _checked(value, mark)


def _decoded(value: object, mark: str) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text in base64")
    try:
        content = base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("is not base64") from None
    return _checked(content.decode("utf-8", "replace"), mark)


def _checked(text: str, mark: str) -> str:
    if any(encrypted in text for encrypted in _ENCRYPTED_KEYS):
        raise ValueError("is an encrypted key; decrypt it: openssl pkey -in FILE -out FILE")
    if text.strip() and mark not in text:
        raise ValueError(f"is not in PEM: there is no `{mark}` in it")
    return text if text.strip() else ""


Certificate = Annotated[SecretStr, BeforeValidator(partial(_text, mark=_CERTIFICATE))]
"""Certificates in PEM."""
PrivateKey = Annotated[SecretStr, BeforeValidator(partial(_text, mark=_KEY))]
"""A private key in PEM."""
EncodedCertificate = Annotated[SecretStr, BeforeValidator(partial(_decoded, mark=_CERTIFICATE))]
"""Certificates in PEM, in base64."""
EncodedKey = Annotated[SecretStr, BeforeValidator(partial(_decoded, mark=_KEY))]
"""A private key in PEM, in base64."""
