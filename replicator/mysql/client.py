"""aiomysql's connection, made to keep to what an address asks of TLS.

By itself it goes on in the clear where a server does not offer TLS, whatever is asked for, and
offers none unless it is asked to.
"""

from __future__ import annotations

import socket
import ssl
from typing import Any

import aiomysql
import anyio.to_thread
from pymysql.constants import CLIENT
from pymysql.err import MySQLError

from replicator.mysql.address import DatabaseAddress
from replicator.mysql.answer_size import AnswerSize, shortened
from replicator.mysql.auth_plugins import refuse_plugin
from replicator.mysql.liveness import notice_loss
from replicator.mysql.login import look_at_refusal, may_refuse_certificate, telling
from replicator.mysql.tls import context_for, refuse_plain


class _Client(aiomysql.Connection):  # type: ignore[misc]
    """A connection with TLS where the server has it, or none where it must have it.

    It takes no answer larger than `replicator.mysql.answer_size` allows.
    """

    def __init__(self, address: DatabaseAddress, context: ssl.SSLContext) -> None:
        super().__init__(ssl=context, **address.options())
        self._answer = AnswerSize()
        self._address = address
        self._transport: Any = None

    async def _request_authentication(self) -> None:
        try:
            await self._authenticate()
        finally:
            # Where the login fails aiomysql closes it in order, and keeps no hold of it.
            writer: Any = self.__dict__["_writer"]
            self._transport = writer.transport if writer is not None else None

    async def _authenticate(self) -> None:
        if not self.server_capabilities & CLIENT.SSL:
            if self._address.tls is not None:
                raise refuse_plain()
            self._ssl_context = None
            self.client_flag &= ~CLIENT.SSL
        # A server may ask for it at once, or later on.
        refuse_plugin(self._address, self._server_auth_plugin)
        await super()._request_authentication()

    async def _execute_command(self, command: int, sql: str | bytes) -> None:
        self._answer.begin()
        await super()._execute_command(command, sql)

    async def _read_bytes(self, num_bytes: int) -> bytes:
        try:
            self._answer.take(num_bytes)
        except MySQLError:
            self.close()
            raise
        found: bytes = await super()._read_bytes(num_bytes)
        return found

    async def _read_packet(self, *kind: Any) -> Any:
        try:
            return await super()._read_packet(*kind)
        except MySQLError as error:
            raise shortened(error) from None

    async def _process_auth(self, plugin_name: bytes, auth_packet: Any) -> Any:
        refuse_plugin(self._address, plugin_name.decode("ascii", "replace"))
        return await super()._process_auth(plugin_name, auth_packet)

    @property
    def socket(self) -> socket.socket:
        """What the connection runs over."""
        writer: Any = self.__dict__["_writer"]
        found: socket.socket = writer.transport.get_extra_info("socket")
        return found

    def close(self) -> None:
        """Drop the connection at once; TLS would wait for the other side to say good-bye."""
        writer: Any = self.__dict__["_writer"]
        self._writer = self._reader = None
        if writer is not None:
            writer.transport.abort()
        elif self._transport is not None:
            self._transport.abort()
        self._transport = None


async def log_in(address: DatabaseAddress) -> aiomysql.Connection:
    """A new connection. Raises the driver's error, TlsError among them."""
    try:
        with telling(address):
            client = _Client(address, context_for(address.tls))
            try:
                await client._connect()
                notice_loss(client.socket)
            except BaseException:
                client.close()
                raise
            return client
    except MySQLError as error:
        if may_refuse_certificate(address, error):
            await anyio.to_thread.run_sync(look_at_refusal, address)
        raise
