"""Ways to prove a password that are not taken part in, whatever a server asks for.

Both client libraries would send the password as it is to any server that asks for it so, also to
one in the place of the real one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pymysql.err

from replicator.mysql.address import DatabaseAddress
from replicator.mysql.errors import ErrorCode

_CLEAR = "mysql_clear_password"
_DIALOG = "dialog"


def refused_plugins(address: DatabaseAddress) -> dict[str, Callable[[Any], Any]]:
    """By name, what PyMySQL is to use for these (its ``auth_plugin_map``)."""
    refused: dict[str, Callable[[Any], Any]] = {_DIALOG: _NoDialog}
    if address.tls is None or not address.tls.ca:
        refused[_CLEAR] = _NotInTheClear
    return refused


def refuse_plugin(address: DatabaseAddress, name: str) -> None:
    """Raise the driver's error for a plugin that is not taken part in."""
    plugin = refused_plugins(address).get(name)
    if plugin is not None:
        plugin(None).authenticate(None)


class _NotInTheClear:
    def __init__(self, connection: object) -> None:
        """PyMySQL gives a plugin the connection."""

    def authenticate(self, packet: object) -> NoReturn:
        """Raise the driver's error."""
        raise _refused(
            "it asks for the password in the clear (mysql_clear_password), which is only sent to a"
            " server that security.ssl-ca vouches for"
        )


class _NoDialog(_NotInTheClear):
    def authenticate(self, packet: object) -> NoReturn:
        """Raise the driver's error."""
        raise _refused(
            "it asks questions at the login (dialog, as PAM does); with TLS and security.ssl-ca it"
            " may ask for the password in the clear instead (pam_use_cleartext_plugin)"
        )


def _refused(text: str) -> pymysql.err.OperationalError:
    return pymysql.err.OperationalError(ErrorCode.CR_AUTH_PLUGIN_CANNOT_LOAD.value, text)
