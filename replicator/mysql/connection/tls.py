"""TLS to servers: makes all TLS contexts, and finds the causes of failures.

Without `Tls`, a connection is encrypted if the server offers it, and the server is trusted, as the
servers' own clients do (MySQL manual, "--ssl-mode", PREFERRED). Needs no more than PyMySQL:
executors have no asyncio driver.
"""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pymysql.err
from pymysql.constants import CR

_UNDER_WAY = (
    ssl.SSLWantReadError,
    ssl.SSLWantWriteError,
    ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
    ssl.SSLSyscallError,
)
"""Errors that only show that the connection broke, as it does when a server ends."""

_EXPIRED, _NOT_YET_VALID = 10, 9
_OTHER_HOST = frozenset({62, 64})
_STRANGERS = frozenset({2, 7, 18, 19, 20, 21, 30})
"""OpenSSL's X509_V_ERR_… (its manual, "X509_STORE_CTX_get_error"): times, names, authorities. 7 and
30 mean that two authorities have the same name, and the other one has signed the certificate."""

_OTHER_VERSION = ("UNSUPPORTED_PROTOCOL", "WRONG_VERSION_NUMBER", "ALERT_PROTOCOL_VERSION")
"""OpenSSL's errors if the two sides have no version in common."""


@dataclass(frozen=True, slots=True)
class Pem:
    """A PEM file by its path, or the text itself, which takes precedence.

    It is pickled with its text, so executors need no such file.
    """

    path: str = ""
    text: str = field(default="", repr=False)

    def __bool__(self) -> bool:
        return bool(self.path or self.text)

    def __str__(self) -> str:
        return self.path or "the text in the task file"

    def read(self) -> str:
        """Return the text, in ASCII. Raises PemError."""
        # There may be other text between its parts, especially names in any script.
        text = self._content().removeprefix("\ufeff").encode("ascii", "replace").decode()
        if "-----BEGIN" not in text:
            raise PemError(f"{self} is not in PEM format: it holds no certificate and no key")
        return text

    def _content(self) -> str:
        if self.text:
            return self.text
        try:
            return Path(self.path).read_bytes().decode("utf-8", "replace")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise PemError(f"{self.path} cannot be read: {reason}") from error

    def __reduce__(self) -> tuple[type[Pem], tuple[str, str]]:
        try:
            text = self.read() if self else ""
        except PemError:
            # Connecting will report the error, in the executor as well as here.
            text = ""
        return Pem, (self.path, text)


@dataclass(frozen=True, slots=True)
class Tls:
    """The requirements for a connection: a server certified by ``ca``, and a client certificate.

    The server's certificate must be for its host, or, if there are ``names``, for one of these.
    Without ``ca``, any certificate is accepted, but a connection without TLS is not.
    """

    ca: Pem = Pem()
    cert: Pem = Pem()
    key: Pem = Pem()
    names: tuple[str, ...] = ()


class PemError(OSError):
    """A file or the task file has other content than it should."""


class TlsError(pymysql.err.OperationalError):
    """There is no TLS connection to a server, and a retry will not help.

    ``way_out``: what to do.
    """

    way_out: str = ""

    @classmethod
    def of(cls, finding: str, way_out: str) -> TlsError:
        """Return the error with the code of the servers' own clients."""
        error = cls(CR.CR_SSL_CONNECTION_ERROR, finding)
        error.way_out = way_out
        return error


class _Context(ssl.SSLContext):
    """A context that also checks the names in the server's certificate.

    ``listening``: seconds to wait for the server's bytes before our bytes are sent.
    """

    names: frozenset[str] = frozenset()
    listening: float = 0


class _Socket(ssl.SSLSocket):
    def do_handshake(self, block: bool = False) -> None:
        super().do_handshake(block)
        _check_names(self)
        listening = cast(_Context, self.context).listening
        if listening:
            self.settimeout(listening)
            with contextlib.suppress(TimeoutError):
                self.recv(1)


class _Object(ssl.SSLObject):
    """An SSL object for asyncio with the same check of names."""

    def do_handshake(self) -> None:
        super().do_handshake()
        _check_names(self)


_Context.sslsocket_class = _Socket
_Context.sslobject_class = _Object


def context_for(tls: Tls | None, *, listening: float = 0) -> ssl.SSLContext:
    """Return a context for connections; ``listening``: seconds to wait after the encryption begins.

    Raises PemError.
    """
    context = _Context(ssl.PROTOCOL_TLS_CLIENT)
    context.listening = listening
    if tls is None or not tls.ca:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context.check_hostname = not tls.names
        context.names = frozenset(tls.names)
        # Every named authority is trusted, even if another one has signed it.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        _load_authority(context, tls.ca)
    if tls is not None and tls.cert:
        _load_own(context, tls.cert, tls.key)
    return context


def load_pair(context: ssl.SSLContext, text: str) -> None:
    """Load a certificate and its key in PEM into a context, without a file that others could read.

    Raises ssl.SSLError, PemError.
    """
    # OpenSSL only reads them from a file; this file is in memory and has no name.
    handle = os.memfd_create("pair")
    try:
        with os.fdopen(handle, "wb", closefd=False) as file:
            file.write(text.encode())
        context.load_cert_chain(f"/proc/self/fd/{handle}", password=_refuse_encrypted)
    finally:
        os.close(handle)


def tls_error(tls: Tls | None, host: str, port: int, error: BaseException) -> TlsError | None:
    """Return the cause of a failure to connect if it is certainly TLS; otherwise None."""
    for cause in _causes(error):
        if isinstance(cause, TlsError):
            return cause
        if isinstance(cause, ssl.SSLCertVerificationError):
            return TlsError.of(*_of_certificate(tls or Tls(), host, port, cause))
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, _UNDER_WAY):
            return TlsError.of(*_of_handshake(tls, host, port, cause))
        if isinstance(cause, PemError):
            return TlsError.of(
                f"'security:' of {host}:{port} can't be used: {cause}",
                f"Look at what it names, on this host: {_look_at_files(tls or Tls())}openssl x509"
                " -noout -text -in FILE (certificates), openssl pkey -noout -in FILE (a key)",
            )
        if _is_without_tls(cause):
            return TlsError.of(
                f"{host}:{port} does not offer TLS, and 'security:' asks for it",
                "Set ssl_cert and ssl_key in the server's my.cnf and restart it, or take"
                " 'security:' out of the task file",
            )
    return None


def refuse_plain() -> pymysql.err.OperationalError:
    """Return PyMySQL's error for a server without TLS if TLS is required."""
    return pymysql.err.OperationalError(
        CR.CR_SSL_CONNECTION_ERROR, "SSL is required but the server doesn't support it"
    )


def _look_at_files(tls: Tls) -> str:
    files = [pem.path for pem in (tls.ca, tls.cert, tls.key) if pem.path and not pem.text]
    return f"ls -l {' '.join(files)}; " if files else ""


def _is_without_tls(cause: BaseException) -> bool:
    return (
        isinstance(cause, pymysql.err.OperationalError)
        and bool(cause.args)
        and cause.args[0] == CR.CR_SSL_CONNECTION_ERROR
    )


def _of_certificate(
    tls: Tls, host: str, port: int, error: ssl.SSLCertVerificationError
) -> tuple[str, str]:
    code = getattr(error, "verify_code", 0)
    said = (getattr(error, "verify_message", "") or str(error)).removesuffix(".")
    look = f"openssl s_client -starttls mysql -connect {host}:{port} | openssl x509 -noout -text"
    if code in (_EXPIRED, _NOT_YET_VALID):
        which = "has expired" if code == _EXPIRED else "is not valid yet"
        return (
            f"the certificate of {host}:{port}, or of its authority, {which}: {said}",
            "Renew it at the server (ALTER INSTANCE RELOAD TLS; MariaDB: FLUSH SSL), and look at"
            f" the clock of this host: {look}",
        )
    if code in _OTHER_HOST:
        return (
            f"the certificate of {host}:{port} is for another host: {said}",
            "Write the name that it has into 'host:', give the server a certificate that names"
            f" {host} (subjectAltName), or name what it has in security.cert-allowed-cn: {look}",
        )
    if code in _STRANGERS:
        return (
            f"the certificate of {host}:{port} was not signed by the authority in"
            f" security.ssl-ca ({tls.ca}): {said}",
            "Put the certificate of the authority that signed the server's into security.ssl-ca;"
            " of several, also those between it and the server's, unless the server shows them"
            f" (its ssl_cert): {look}",
        )
    return (
        f"the certificate of {host}:{port} does not hold: {said}",
        f"Look at the server's certificate, security.ssl-ca and security.cert-allowed-cn: {look}",
    )


def _of_handshake(tls: Tls | None, host: str, port: int, error: ssl.SSLError) -> tuple[str, str]:
    said = str(error)
    if any(version in said for version in _OTHER_VERSION):
        without = "" if tls else ", or turn its TLS off (skip_ssl)"
        return (
            f"{host}:{port} speaks no version of TLS that is spoken here, 1.2 or newer: {said}",
            f"Let the server speak TLS 1.2 or newer (tls_version){without}; look with: openssl"
            f" s_client -starttls mysql -connect {host}:{port}",
        )
    if "ALERT_CERTIFICATE_EXPIRED" in said and tls is not None and tls.cert:
        return (
            f"{host}:{port} says that the certificate that it is shown has expired: {said}",
            f"Renew security.ssl-cert ({tls.cert}) and its key, and look at the server's clock:"
            " openssl x509 -noout -dates -in FILE",
        )
    if "ALERT" in said and tls is not None and tls.cert:
        return (
            f"{host}:{port} does not take the certificate that it is shown: {said}",
            f"Put one that the server's ssl_ca has signed into security.ssl-cert ({tls.cert}) and"
            " its key into security.ssl-key",
        )
    if tls is None:
        return (
            f"no TLS connection to {host}:{port}, which offers it: {said}",
            "Let the server speak TLS 1.2 or newer (tls_version), or turn its TLS off (skip_ssl);"
            f" look with: openssl s_client -starttls mysql -connect {host}:{port}",
        )
    return (
        f"no TLS connection to {host}:{port}: {said}",
        f"Look at the files of 'security:' (ssl-ca: {tls.ca or 'none'}, ssl-cert:"
        f" {tls.cert or 'none'}, ssl-key: {tls.key or 'none'}) and at the server: openssl s_client"
        f" -starttls mysql -connect {host}:{port}",
    )


def _load_authority(context: ssl.SSLContext, ca: Pem) -> None:
    text = ca.read()
    try:
        context.load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError) as error:
        raise PemError(f"ssl-ca ({ca}) holds no certificate in PEM: {error}") from None


def _load_own(context: ssl.SSLContext, cert: Pem, key: Pem) -> None:
    pair = f"{key.read()}\n{cert.read()}"
    try:
        load_pair(context, pair)
    except (ssl.SSLError, PemError) as error:
        raise PemError(
            f"ssl-cert ({cert}) and ssl-key ({key}) are not a certificate and its key: {error}"
        ) from None


def _refuse_encrypted() -> str:
    # Otherwise OpenSSL asks for the password on the terminal.
    raise PemError("the key is encrypted; decrypt it: openssl pkey -in FILE -out FILE")


def _check_names(connection: ssl.SSLSocket | ssl.SSLObject) -> None:
    """Raise ssl.SSLCertVerificationError if the certificate does not have the required name."""
    wanted = cast(_Context, connection.context).names
    if not wanted:
        return
    certificate = cast(dict[str, Any], connection.getpeercert() or {})
    subject = (pair for parts in certificate.get("subject", ()) for pair in parts)
    found = {value for name, value in subject if name == "commonName"}
    others = certificate.get("subjectAltName", ())
    found |= {value for kind, value in others if kind in ("DNS", "IP Address")}
    if not found & wanted:
        raise ssl.SSLCertVerificationError(
            ssl.SSL_ERROR_SSL,
            f"its names are {', '.join(sorted(found)) or '(none)'}, and security.cert-allowed-cn"
            f" allows {', '.join(sorted(wanted))}",
        )


def _causes(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    while current is not None:
        yield current
        # PyMySQL stores the socket's error separately.
        current = (
            getattr(current, "original_exception", None) or current.__cause__ or current.__context__
        )
