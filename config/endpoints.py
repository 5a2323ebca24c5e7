"""Database servers: where they are and who logs in."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, SecretStr, model_validator

from config.base import Section
from config.values import Scalar, Whole, parse_whole


class Security(Section):
    """TLS of a connection; relative paths start at the folder the process runs in."""

    ssl_ca: str = ""
    """File of the certificate authority that signed the server's certificate."""
    ssl_cert: str = ""
    """File of the client's certificate; together with `ssl-key`."""
    ssl_key: str = ""
    """File of the client's private key; together with `ssl-cert`."""
    cert_allowed_cn: tuple[str, ...] = ()
    """Names that the server's certificate may have."""
    ssl_ca_bytes: Any = ""
    """The content of `ssl-ca`."""
    ssl_cert_bytes: Any = ""
    """The content of `ssl-cert`."""
    ssl_key_bytes: Any = ""
    """The content of `ssl-key`."""
    ssl_ca_base64: str = ""
    """The content of `ssl-ca`, encoded."""
    ssl_cert_base64: str = ""
    """The content of `ssl-cert`, encoded."""
    ssl_key_base64: str = ""
    """The content of `ssl-key`, encoded."""

    @model_validator(mode="after")
    def _pair(self) -> Security:
        if bool(self.ssl_cert) != bool(self.ssl_key):
            raise ValueError("`ssl-cert` and `ssl-key` belong together: give both or neither")
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
    """Password in plain text, or `${NAME}` to take it from the environment variable NAME."""
    security: Security | None = None
    """TLS files."""
    max_allowed_packet: Whole | None = None
    """Packet limit of the client."""
    session: dict[str, Scalar] = Field(default_factory=dict)
    """Session variables set on every connection to the target."""


class TargetDatabase(Endpoint):
    """The database that all tables are merged into."""
