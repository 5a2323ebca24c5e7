"""The sections about database servers: their addresses, accounts and TLS.

Certificates and keys can be in the task file itself, in PEM.
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
    """Return a PEM text that is given as text or, as DM prints it, as a list of bytes."""
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
    """A certificate or key: its file, or its text if the task file contains it."""

    file: str
    text: SecretStr

    def __bool__(self) -> bool:
        return bool(self.file or self.text)


class Security(Section):
    """TLS of a connection.

    Without this section, a connection is encrypted if the server supports TLS, but the server's
    certificate is not verified. With a certificate authority, the server's certificate must be
    signed by it and be valid for `host`. With an authority or a client certificate, the task never
    connects without TLS.

    The authentication plugins `caching_sha2_password` and `sha256_password` send the password to
    the server. The task sends it only over loopback or to a server whose certificate `ssl-ca`
    verifies; other servers need `server-public-key-path` or `get-server-public-key`.

    Each of the three certificate settings may be given as bytes, base64 or a file. If a setting is
    given in several of these forms, the one named first here counts. Relative paths start at the
    working directory of the process. Files are read on this host, for each new connection.
    """

    ssl_ca: str = ""
    """File with the certificate of the authority that signed the server's certificate, or of a
    higher authority. It may contain several certificates.
    """
    ssl_cert: str = ""
    """File with the client's certificate, followed by the intermediate certificates. Needs
    `ssl-key`."""
    ssl_key: str = ""
    """File with the client's private key, unencrypted. Needs `ssl-cert`."""
    cert_allowed_cn: tuple[str, ...] = ()
    """The server's certificate must have one of these names instead of `host`. Needs a certificate
    authority."""
    ssl_ca_bytes: Certificate = _NOTHING
    """The content of `ssl-ca`, as text or as a list of bytes."""
    ssl_cert_bytes: Certificate = _NOTHING
    """The content of `ssl-cert`, as text or as a list of bytes."""
    ssl_key_bytes: PrivateKey = _NOTHING
    """The content of `ssl-key`, as text or as a list of bytes."""
    ssl_ca_base64: EncodedCertificate = _NOTHING
    """The content of `ssl-ca`, in base64."""
    ssl_cert_base64: EncodedCertificate = _NOTHING
    """The content of `ssl-cert`, in base64."""
    ssl_key_base64: EncodedKey = _NOTHING
    """The content of `ssl-key`, in base64."""

    server_public_key_path: str = ""
    """File with the server's RSA public key (PEM). It encrypts the password for a server that
    `ssl-ca` does not verify, and has precedence over `get-server-public-key`. To get the key from
    the server: `SHOW STATUS LIKE 'Caching_sha2_password_rsa_public_key'`."""
    get_server_public_key: Flag = False
    """Send the password to servers that `ssl-ca` does not verify: over TLS, or encrypted with the
    RSA key that the server sends."""

    def parts(self) -> tuple[PemPart, PemPart, PemPart]:
        """The certificates of the authority and of the client, and the client's key."""
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
    """A server and the account."""

    host: Annotated[str, Field(min_length=1)]
    """Host name or address of the server."""
    port: Annotated[Whole, Field(ge=1, le=65535), BeforeValidator(parse_whole)]
    """TCP port."""
    user: Annotated[str, Field(min_length=1)]
    """User name of the account."""
    password: SecretStr = SecretStr("")
    """The password in plain text, `${NAME}` for the environment variable NAME, or `ENC(…)` as
    printed by `replicator encrypt`."""
    password_file: str = ""
    """File that contains only the password, instead of `password`. A relative path starts at the
    directory of the task file."""
    security: Security | None = None
    """TLS of the connections."""
    max_allowed_packet: Whole | None = None
    """Packet limit of the client."""
    session: dict[str, Scalar] = Field(default_factory=dict)
    """Session variables for each connection to the target."""


class TargetDatabase(Endpoint):
    """The server that all tables are merged into."""
