"""Checks the login, and explains each kind of refusal to the operator."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass

import pymysql.err
from pymysql.constants import CR, ER

from replicator.checks.check_items import CONNECTION
from replicator.checks.result import CheckedPart, CheckResult
from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseAddress,
    DatabaseUnavailableError,
)
from replicator.mysql.connection.tls import tls_error
from replicator.mysql.errors import (
    ACCESS_DENIED,
    ACCOUNT_LOCKED,
    HOST_REFUSED,
    PASSWORD_EXPIRED,
)
from replicator.mysql.names import quote

_OWN_LIMIT = frozenset({ER.TOO_MANY_USER_CONNECTIONS, ER.USER_LIMIT_REACHED})
_SESSION_SETTING = frozenset(
    {
        ER.UNKNOWN_SYSTEM_VARIABLE,
        ER.SPECIFIC_ACCESS_DENIED_ERROR,
        ER.WRONG_VALUE_FOR_VAR,
        ER.WRONG_TYPE_FOR_VAR,
        ER.INCORRECT_GLOBAL_LOCAL_VAR,
        ER.UNKNOWN_TIME_ZONE,
    }
)


_OTHER_PLUGIN = (
    "Give the account one that is: mysql_native_password, caching_sha2_password, sha256_password"
)


WITHHELD_WAY_OUT = (
    "Give the server a certificate and name its authority in security.ssl-ca. Or, for an account"
    " with caching_sha2_password, let the password be encrypted with the server's own key: save it"
    " here as a file (SHOW STATUS LIKE 'Caching_sha2_password_rsa_public_key' tells it) and name"
    " that in security.server-public-key-path. Or, where nobody else can answer in the server's"
    " place, set security.get-server-public-key: true"
)


async def check_login(place: CheckedPart, connection: Connection) -> CheckResult:
    """Connect, log in and run the first statement."""
    address = connection.address
    try:
        await connection.fetch("SELECT 1")
    except (DatabaseUnavailableError, pymysql.err.MySQLError, OSError) as error:
        finding, way_out = explain(address, error)
        return place.failed(CONNECTION, finding, way_out)
    return place.passed(CONNECTION, f"logged in as {address}")


def ended_early(place: CheckedPart, error: BaseException) -> CheckResult:
    """Return the finding for a server whose error has ended its checks."""
    return place.failed(
        "connection",
        f"checking ended early, on an error of the server: {error}",
        "Look at the server's error log, then run the check again",
    )


def explain(address: DatabaseAddress, error: BaseException) -> tuple[str, str]:
    """Return the meaning of a failure to log in, and the remedy."""
    causes = list(_causes(error))
    return (
        _of_tls(address, causes) or _of_server(address, causes) or _of_network(address, causes)
    ) or (f"{address} cannot be used: {error}", f"Try: {_client(address)}")


def _causes(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__


def _of_tls(address: DatabaseAddress, causes: list[BaseException]) -> tuple[str, str] | None:
    found = tls_error(address.tls, address.host, address.port, causes[0])
    return (str(found.args[-1]), found.way_out) if found is not None else None


def _of_server(address: DatabaseAddress, causes: list[BaseException]) -> tuple[str, str] | None:
    found = next(
        (
            cause
            for cause in causes
            if isinstance(cause, pymysql.err.MySQLError)
            and cause.args
            and isinstance(cause.args[0], int)
        ),
        None,
    )
    if found is None:
        return None
    code = found.args[0]
    said = f"{found.args[1] if len(found.args) > 1 else found} ({code})"
    return _of_account(address, code, said) or _of_state(address, code, said)


def _of_account(address: DatabaseAddress, code: int, said: str) -> tuple[str, str] | None:
    account = f"'{address.user}'@'%'"
    shows_certificate = address.tls is not None and bool(address.tls.cert)
    if code in ACCESS_DENIED and not address.password and not shows_certificate:
        return (
            f"{address} refuses the login, for which the task file has no password: {said}",
            "Write it into the task file; in quotes, since YAML takes what begins with # or & for"
            f" something else. Or at the server: ALTER USER {account} IDENTIFIED BY '';",
        )
    if code in ACCESS_DENIED:
        return (
            f"{address} refuses the login: {said}",
            "Correct user and password in the task file, or at the server: "
            f"ALTER USER {account} IDENTIFIED BY '…'; try with: {_client(address)}. An account that"
            " asks for more (REQUIRE: SHOW CREATE USER) refuses who comes without TLS or without"
            " that certificate in the same words, and so does TiDB without TLS where the account"
            " has caching_sha2_password: look at security.ssl-cert, too",
        )
    if code in PASSWORD_EXPIRED:
        return (
            f"{address} refuses the login, the password has expired: {said}",
            f"At the server: ALTER USER {account} IDENTIFIED BY '…'; and that it doesn't expire"
            f" again: ALTER USER {account} PASSWORD EXPIRE NEVER; the new one into the task file",
        )
    if code in ACCOUNT_LOCKED:
        return (
            f"{address} refuses the login, the account is locked: {said}",
            f"At the server: ALTER USER {account} ACCOUNT UNLOCK; after too many wrong passwords on"
            " MariaDB: FLUSH PRIVILEGES; look who else uses the account, with which password",
        )
    if code == CR.CR_AUTH_PLUGIN_CANNOT_LOAD:
        return (
            f"{address} wants the password to be proved in a way that is not known here: "
            f"{said.removesuffix(f' ({code})')}",
            f"{_OTHER_PLUGIN} (MySQL: ALTER USER {account} IDENTIFIED WITH caching_sha2_password BY"
            " '…'; TiDB: the same with mysql_native_password; MariaDB: ALTER USER"
            f" {account} IDENTIFIED VIA mysql_native_password USING PASSWORD('…');)",
        )
    if code == CR.CR_AUTH_PLUGIN_ERR:
        return said.removesuffix(f" ({code})"), WITHHELD_WAY_OUT
    if code in HOST_REFUSED:
        return (
            f"{address} does not let this host in: {said}",
            f"At the server: CREATE USER '{address.user}'@'<this host>' IDENTIFIED BY '…'; "
            "if the host is blocked: FLUSH HOSTS;",
        )
    if code in _OWN_LIMIT:
        return (
            f"{address} has used up what this account may: {said}",
            f"At the server, what the error names: ALTER USER {account} WITH MAX_USER_CONNECTIONS"
            " 0; (or MAX_QUERIES_PER_HOUR, MAX_UPDATES_PER_HOUR, MAX_CONNECTIONS_PER_HOUR; MySQL"
            f" 5.6: GRANT USAGE ON *.* TO {account} WITH …;), or, for all accounts, SET GLOBAL"
            " max_user_connections = 0;",
        )
    return None


def _of_state(address: DatabaseAddress, code: int, said: str) -> tuple[str, str] | None:
    if code == ER.CON_COUNT_ERROR:
        return (
            f"{address} has no connection left: {said}",
            "At the server: SET GLOBAL max_connections = 500; or end idle clients",
        )
    if code in _SESSION_SETTING:
        names = ", ".join(name for name, _ in address.session) or "time_zone, sql_mode"
        return (
            f"{address} refuses a session setting: {said}",
            f"Correct or remove it under 'session:' in the task file (there: {names})",
        )
    return None


def _of_network(address: DatabaseAddress, causes: list[BaseException]) -> tuple[str, str] | None:
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            return (
                f"the host name {address.host!r} is not known here: {cause}",
                f"Correct 'host:' in the task file; try with: getent hosts {address.host}",
            )
        if isinstance(cause, ConnectionRefusedError):
            return (
                f"nothing listens at {address.host}:{address.port}",
                "Start the server or correct 'host:' and 'port:'; if it runs there, look at its "
                f"bind-address and skip-networking; try with: {_client(address)}",
            )
        if isinstance(cause, TimeoutError):
            return (
                f"{address.host}:{address.port} does not answer",
                "Look for a firewall between this host and the server; try with: "
                f"nc -vz -w 5 {address.host} {address.port}",
            )
    return None


def _client(address: DatabaseAddress) -> str:
    return f"mysql -h {address.host} -P {address.port} -u {address.user} -p"


_LITERAL_NAMES = "SHOW GLOBAL VARIABLES LIKE 'partial_revokes'"
"""With this variable, a name of a schema in GRANT means only that schema (MySQL manual, "Privilege
Restriction Using Partial Revokes"); otherwise it is a pattern ("GRANT Statement")."""


@dataclass(frozen=True, slots=True)
class Account:
    """``name`` is quoted; ``patterns``: whether GRANT treats names of schemas as patterns."""

    name: str
    patterns: bool

    def grant(self, rights: str, schema: str) -> str:
        """Return the statement that gives rights in one schema.

        An account's rights in a schema are the rights of the pattern that fits best, and no others.
        So one statement must have all necessary rights.
        """
        # A name with pattern characters must not match other schemas, too.
        return self._grant(rights, _literal(schema) if self.patterns else schema)

    def grant_pattern(self, pattern: str) -> str:
        """Return the statement that lets an account read the schemas that match a pattern."""
        return self._grant("SELECT", _literal(pattern).replace("*", "%").replace("?", "_"))

    def _grant(self, rights: str, schema: str) -> str:
        return f"GRANT {rights} ON {quote(schema)}.* TO {self.name};"

    def grant_everywhere(self, rights: str) -> str:
        """Return the statement that gives rights for the whole server."""
        return f"GRANT {rights} ON *.* TO {self.name};"


async def account_of(connection: Connection) -> Account:
    """Return the account of a connection. Raises DatabaseUnavailableError or the server's error."""
    # A login as app may be 'app'@'10.%': a GRANT to another name would make a new account, or fail.
    user, _, host = str((await connection.fetch("SELECT CURRENT_USER()"))[0][0]).rpartition("@")
    literal = [str(value).upper() for _, value in await connection.fetch(_LITERAL_NAMES)] == ["ON"]
    return Account(f"{_quoted(user)}@{_quoted(host)}", not literal)


def _literal(schema: str) -> str:
    return schema.replace("\\", "\\\\").replace("_", r"\_").replace("%", r"\%")


def _quoted(part: str) -> str:
    return f"'{part}'" if not set("'\\") & set(part) else quote(part)
