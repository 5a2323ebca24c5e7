"""aiomysql's connection, made to keep to what an address asks of TLS.

By itself it goes on in the clear where a server does not offer TLS, whatever is asked for, and
offers none unless it is asked to.
"""

from __future__ import annotations

from typing import Any

import aiomysql
import anyio.to_thread
from pymysql.constants import CLIENT
from pymysql.err import MySQLError

from replicator.mysql.address import DatabaseAddress
from replicator.mysql.login import look_at_refusal, may_refuse_certificate, telling
from replicator.mysql.tls import context_for, refuse_plain


class _Client(aiomysql.Connection):  # type: ignore[misc]
    """A connection with TLS where the server has it, or none where it must have it."""

    def __init__(self, *, tls_required: bool, **options: Any) -> None:
        super().__init__(**options)
        self._tls_required = tls_required

    async def _request_authentication(self) -> None:
        if not self.server_capabilities & CLIENT.SSL:
            if self._tls_required:
                raise refuse_plain()
            self._ssl_context = None
            self.client_flag &= ~CLIENT.SSL
        await super()._request_authentication()

    def close(self) -> None:
        """Drop the connection at once; TLS would wait for the other side to say good-bye."""
        writer: Any = self.__dict__["_writer"]
        self._writer = self._reader = None
        if writer is not None:
            writer.transport.abort()


async def log_in(address: DatabaseAddress) -> aiomysql.Connection:
    """A new connection. Raises the driver's error, TlsError among them."""
    try:
        with telling(address):
            client = _Client(
                tls_required=address.tls is not None,
                ssl=context_for(address.tls),
                **address.options(),
            )
            try:
                await client._connect()
            except BaseException:
                client.close()
                raise
            return client
    except MySQLError as error:
        if may_refuse_certificate(address, error):
            await anyio.to_thread.run_sync(look_at_refusal, address)
        raise
