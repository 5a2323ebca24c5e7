"""PyMySQL's connection, made to keep passwords to itself and to tell an answer that is none.

Which packet of a login means what, a server decides. See `replicator.mysql.auth_plugins`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pymysql.err
from pymysql.connections import Connection

from replicator.mysql.answers import READING, asks_for_file, look_at_rows
from replicator.mysql.auth_plugins import first_plugin
from replicator.mysql.errors import ErrorCode, OddAnswerError


class LoginConnection(Connection):
    """A connection that raises OddAnswerError where the server's answer can't be understood.

    Give it ``auth_plugin_map=plugins_of(address)``.
    """

    def _get_server_information(self) -> None:
        with self._reading():
            cast(Any, super())._get_server_information()

    def _request_authentication(self) -> None:
        own = cast(Any, self)
        own._auth_plugin_name = first_plugin(own._auth_plugin_name)
        with self._reading():
            try:
                cast(Any, super())._request_authentication()
            except RuntimeError as error:
                # PyMySQL lacks a package for this way of proving the password.
                raise pymysql.err.OperationalError(
                    ErrorCode.CR_AUTH_PLUGIN_CANNOT_LOAD.value, str(error)
                ) from error

    def _read_packet(self, *given: Any) -> Any:
        with self._reading():
            return cast(Any, super())._read_packet(*given)

    def _read_query_result(self, unbuffered: bool = False) -> int:
        with self._reading():
            try:
                affected = cast(Any, super())._read_query_result(unbuffered)
            except RuntimeError as error:
                # PyMySQL has not been told that it may read files.
                cast(Any, self)._force_close()
                raise asks_for_file() from error
            look_at_rows(cast(Any, self)._result)
            return int(affected)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """After an odd answer the connection is of no use."""
        try:
            with READING:
                yield
        except OddAnswerError:
            cast(Any, self)._force_close()
            raise
