"""aiomysql's connection, made to keep to what an address asks of TLS.

By itself it goes on in the clear where a server does not offer TLS, whatever is asked for, and
offers none unless it is asked to.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import aiomysql
import anyio.to_thread
from pymysql.constants import CLIENT
from pymysql.err import MySQLError, OperationalError

from replicator.mysql.connection.address import CONNECT_TIMEOUT, DatabaseAddress
from replicator.mysql.connection.answers import (
    READING,
    AnswerSize,
    asks_for_file,
    look_at_rows,
    shortened,
)
from replicator.mysql.connection.auth_plugins import (
    CACHING_SHA2,
    OWN_PLUGINS,
    SHA256,
    channel_of,
    first_plugin,
    prove,
    proved,
)
from replicator.mysql.connection.liveness import notice_loss
from replicator.mysql.connection.login_errors import (
    look_at_refusal,
    may_refuse_certificate,
    provable_beside,
    prove_beside,
    telling,
)
from replicator.mysql.connection.tls import context_for, refuse_plain
from replicator.mysql.errors import ErrorCode


class _Client(aiomysql.Connection):  # type: ignore[misc]
    """A connection with TLS where the server has it, or none where it must have it.

    It takes no answer larger than `replicator.mysql.connection.answers` allows.
    """

    def __init__(self, address: DatabaseAddress, context: ssl.SSLContext) -> None:
        super().__init__(ssl=context, **address.options())
        self._answer = AnswerSize()
        self._address = address
        self._transport: Any = None

    async def _request_authentication(self) -> None:
        try:
            with _in_time():
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
        offered: str = self.__dict__["_server_auth_plugin"]
        self._server_auth_plugin = first_plugin(offered)
        with READING:
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

    async def _process_auth(self, plugin_name: bytes, auth_packet: Any) -> Any:
        name = plugin_name.decode("ascii", "replace")
        if name in OWN_PLUGINS:
            return await self._prove(name, auth_packet)
        return await super()._process_auth(plugin_name, auth_packet)

    async def caching_sha2_password_auth(self, pkt: Any) -> Any:
        """Prove the password, where the server asks for it at once."""
        return await self._prove(CACHING_SHA2, pkt)

    async def sha256_password_auth(self, pkt: Any) -> Any:
        """The same for the other plugin."""
        return await self._prove(SHA256, pkt)

    async def _prove(self, plugin: str, packet: Any) -> Any:
        channel = channel_of(self._address, self.socket, encrypted=self._secure)
        exchange = prove(plugin, self._address, channel, packet, self.salt)
        try:
            sent = next(exchange)
            while True:
                if sent is not None:
                    self.write_packet(sent)
                sent = exchange.send(await self._read_packet())
        except StopIteration as end:
            return proved(end.value)

    async def _get_server_information(self) -> None:
        with READING, _in_time():
            await super()._get_server_information()

    async def _read_packet(self, *kind: Any) -> Any:
        with READING:
            try:
                return await super()._read_packet(*kind)
            except MySQLError as error:
                raise shortened(error) from None

    async def _read_query_result(self, unbuffered: bool = False) -> None:
        with READING:
            try:
                await super()._read_query_result(unbuffered=unbuffered)
            except RuntimeError as error:
                # It has not been told that it may read files.
                raise asks_for_file() from error
            look_at_rows(self._result)

    async def _read_ok_packet(self) -> bool:
        with READING:
            return bool(await super()._read_ok_packet())

    async def show_warnings(self) -> Any:
        """The rows of SHOW WARNINGS. Raises the driver's error."""
        with READING:
            return await super().show_warnings()

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


@contextmanager
def _in_time() -> Iterator[None]:
    """A step of a login. By itself aiomysql limits only how long a connection takes."""
    try:
        with anyio.fail_after(CONNECT_TIMEOUT):
            yield
    except TimeoutError:
        silent = f"no answer to the login for {CONNECT_TIMEOUT} s"
        raise OperationalError(ErrorCode.CR_CONN_HOST_ERROR.value, silent) from None


async def log_in(address: DatabaseAddress) -> aiomysql.Connection:
    """A new connection. Raises the driver's error, TlsError and OddAnswerError among them."""
    try:
        return await _connected(address)
    except MySQLError as error:
        if may_refuse_certificate(address, error):
            await anyio.to_thread.run_sync(look_at_refusal, address)
        if not provable_beside(address, error):
            raise
    await anyio.to_thread.run_sync(prove_beside, address)
    return await _connected(address)


async def _connected(address: DatabaseAddress) -> _Client:
    with telling(address):
        client = _Client(address, context_for(address.tls))
        try:
            await client._connect()
            notice_loss(client.socket)
        except BaseException:
            client.close()
            raise
        return client
