"""Database servers: where they are and who logs in.

Certificates and keys that stand in the task file itself, in PEM.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from pydantic import BeforeValidator, Field, SecretStr, model_validator

from config.base import Section
from config.values import Flag, Scalar, Whole, parse_whole

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


_NOTHING = SecretStr("")


@dataclass(frozen=True, slots=True)
class PemPart:
    """A certificate or key: its file, and the text itself where the task file holds it."""

    file: str
    text: SecretStr

    def __bool__(self) -> bool:
        return bool(self.file or self.text)


class Security(Section):
    """TLS of a connection. It is encrypted without this section, too, where the server has TLS, but
    then any server is believed. With an authority, the server's certificate must be one that it has
    signed, and be for `host`; with an authority, a certificate or a key of the client here, there
    is no connection without TLS.

    Some accounts (`caching_sha2_password`, `sha256_password`) let the server read the password. It
    is sent to a server with a certificate that `ssl-ca` vouches for, or over loopback; to any other
    one only as `server-public-key-path` or `get-server-public-key` allow.

    What is given in several ways counts in this order: bytes, base64, file. Relative paths start at
    the folder the process runs in. Files are read for each connection, on this host only.
    """

    ssl_ca: str = ""
    """File of the certificate authority that signed the server's certificate, or of one above it;
    there may be several in it."""
    ssl_cert: str = ""
    """File of the client's certificate, with those that lead to its authority behind it; together
    with `ssl-key`."""
    ssl_key: str = ""
    """File of the client's private key, not encrypted; together with `ssl-cert`."""
    cert_allowed_cn: tuple[str, ...] = ()
    """Names of which the server's certificate must have one, instead of that of `host`; together
    with an authority."""
    ssl_ca_bytes: Certificate = _NOTHING
    """The content of `ssl-ca`, as text or a list of bytes."""
    ssl_cert_bytes: Certificate = _NOTHING
    """The content of `ssl-cert`, likewise."""
    ssl_key_bytes: PrivateKey = _NOTHING
    """The content of `ssl-key`, likewise."""
    ssl_ca_base64: EncodedCertificate = _NOTHING
    """The content of `ssl-ca`, in base64."""
    ssl_cert_base64: EncodedCertificate = _NOTHING
    """The content of `ssl-cert`, in base64."""
    ssl_key_base64: EncodedKey = _NOTHING
    """The content of `ssl-key`, in base64."""

    server_public_key_path: str = ""
    """File of the server's RSA key in PEM, with which the password is encrypted where `ssl-ca` does
    not vouch for the server. It counts before `get-server-public-key`. At the server: SHOW STATUS
    LIKE 'Caching_sha2_password_rsa_public_key'."""
    get_server_public_key: Flag = False
    """Trust any server with the password: encrypt it with the RSA key that the server sends, and
    send it over TLS also if `ssl-ca` does not vouch for the server."""

    def parts(self) -> tuple[PemPart, PemPart, PemPart]:
        """The authority, the client's certificate, its key."""
        return (
            PemPart(self.ssl_ca, self.ssl_ca_bytes or self.ssl_ca_base64),
            PemPart(self.ssl_cert, self.ssl_cert_bytes or self.ssl_cert_base64),
            PemPart(self.ssl_key, self.ssl_key_bytes or self.ssl_key_base64),
        )

    @model_validator(mode="after")
    def _belong_together(self) -> Security:
        authority, certificate, key = self.parts()
        if bool(certificate) != bool(key):
            raise ValueError("`ssl-cert` and `ssl-key` belong together: give both or neither")
        if self.cert_allowed_cn and not authority:
            raise ValueError(
                "`cert-allowed-cn` says nothing without the authority that vouches for the names:"
                " give `ssl-ca`, too"
            )
        return self


class Endpoint(Section):
    """A server and the account used there."""

    host: Annotated[str, Field(min_length=1)]
    """Name or address of the server."""
    port: Annotated[Whole, Field(ge=1, le=65535), BeforeValidator(parse_whole)]
    """TCP port."""
    user: Annotated[str, Field(min_length=1)]
    """Account."""
    password: SecretStr = SecretStr("")
    """Password in plain text; `${NAME}` to take it from the environment variable NAME; `ENC(…)`, as
    `replicator encrypt` prints it."""
    password_file: str = ""
    """File that holds the password alone, instead of `password`; relative paths start at the folder
    of the task file."""
    security: Security | None = None
    """TLS files."""
    max_allowed_packet: Whole | None = None
    """Packet limit of the client."""
    session: dict[str, Scalar] = Field(default_factory=dict)
    """Session variables set on every connection to the target."""


class TargetDatabase(Endpoint):
    """The database that all tables are merged into."""
