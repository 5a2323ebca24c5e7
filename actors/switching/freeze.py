"""Makes the sources read-only, and reverses it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from time import monotonic

import anyio
from attrs import define, field
from pymysql.constants import ER
from pymysql.err import MySQLError

from replicator.checks.connecting import account_of
from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.supported_servers import parse_version
from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseAddress,
    DatabaseUnavailableError,
)
from replicator.mysql.errors import error_code, error_text
from replicator.mysql.server.binlog_end import binlog_end

READ_ONLY, SUPER_READ_ONLY = "read_only", "super_read_only"

_MARK = "/* replicator switch */"
"""A comment in each statement that freezes a source, so that its thread can be found."""

_LOOK_SECONDS = 0.05

_DENIED = {ER.SPECIFIC_ACCESS_DENIED_ERROR, ER.ACCESS_DENIED_ERROR}


class FreezeError(Exception):
    """A source can't be made read-only, or writable again.

    Attributes:
        remedies: what the operator can do.
    """

    def __init__(self, message: str, *remedies: str) -> None:
        super().__init__(message)
        self.message = message
        self.remedies = remedies


@define(eq=False)
class Freezer:
    """Reads and sets `read_only` on the sources.

    Attributes:
        addresses: the sources.
        frozen: by source, the variables that this switch sets, with their former values.
    """

    _addresses: Mapping[str, DatabaseAddress]
    frozen: Mapping[str, Mapping[str, int]] = field(factory=dict)

    async def variables(self) -> dict[str, dict[str, int]]:
        """Return `read_only` of each source, and `super_read_only` if the source has it."""
        found = {}
        for source, address in self._addresses.items():
            with closing(Connection(address)) as connection:
                found[source] = await _variables(connection)
        return found

    async def writable(self) -> list[str]:
        """Return the sources that are not read-only."""
        found = await self.variables()
        return [source for source, values in found.items() if not values.get(READ_ONLY)]

    async def plan(self) -> Mapping[str, Mapping[str, int]]:
        """Record the variables to set; return them by source, with their present values."""
        found = await self.variables()
        self.frozen = {
            source: {name: value for name, value in values.items() if not value}
            for source, values in found.items()
            if not all(values.values())
        }
        return self.frozen

    async def freeze(self, seconds: int) -> None:
        """Set the variables that `plan` has recorded.

        Raises FreezeError, DatabaseUnavailableError.

        Args:
            seconds: maximum wait for statements and table locks of other clients.
        """
        end = monotonic() + seconds
        for source, values in self.frozen.items():
            left = max(1, int(end - monotonic()))
            with closing(Connection(self._addresses[source])) as connection:
                try:
                    await connection.execute(f"SET SESSION lock_wait_timeout = {left}")
                    for name in sorted(values):
                        await connection.execute(f"SET GLOBAL {name} = 1 {_MARK}")
                except MySQLError as error:
                    if name == SUPER_READ_ONLY and error_code(error) in _DENIED:
                        continue
                    message, remedies = await _refused(source, connection, error)
                    raise FreezeError(message, *remedies) from error

    async def findings(self, *, needed: bool) -> list[CheckResult]:
        """Return whether the accounts may make their sources read-only.

        Each server is asked to set `read_only` to its present value. Raises
        DatabaseUnavailableError.

        Args:
            needed: whether the switch itself makes the sources read-only.
        """
        results = []
        for source, address in self._addresses.items():
            place = CheckedPart(source)
            with closing(Connection(address)) as connection:
                try:
                    await connection.execute(f"SET GLOBAL {READ_ONLY} = @@GLOBAL.{READ_ONLY}")
                except MySQLError as error:
                    message, remedies = await _refused(source, connection, error)
                    judged = place.failed if needed else place.warning
                    results.append(judged("freeze", message, *remedies))
                else:
                    results.append(place.passed("freeze", "--freeze can make it read-only"))
        return results

    async def thaw(self) -> None:
        """Restore the former values of the variables.

        Raises FreezeError that names the sources whose variables could not be restored.
        """
        left = []
        for source, values in self.frozen.items():
            # In MySQL, `read_only` can't be 0 while `super_read_only` is 1.
            statements = {name: f"SET GLOBAL {name} = 0" for name in sorted(values, reverse=True)}
            if source not in self._addresses:
                left.append(f"{source} (not in the task file): {'; '.join(statements.values())}")
                continue
            try:
                with closing(Connection(self._addresses[source])) as connection:
                    await _end_waiting(connection)
                    present = await _variables(connection)
                    for name, statement in statements.items():
                        if present.get(name):
                            await connection.execute(statement)
            except (DatabaseUnavailableError, MySQLError) as error:
                left.append(f"{source} ({error}): {'; '.join(statements.values())}")
        if left:
            raise FreezeError(
                f"still read-only, although the switch has ended: {', '.join(left)}",
                "execute these statements there, or `replicator switch TASK.yaml --abort`",
            )

    async def written_since(self, ends: Mapping[str, str]) -> list[str]:
        """Return the sources whose binlogs have other ends now, in spite of `read_only`."""
        return sorted(
            source for source, end in (await self.ends()).items() if end != ends.get(source)
        )

    async def ends(self) -> dict[str, str]:
        """Return the end of each source's binlog, as `file:offset`."""
        found = {}
        for source, address in self._addresses.items():
            with closing(Connection(address)) as connection:
                end = await binlog_end(connection)
                found[source] = f"{end.file}:{end.offset}" if end else ""
        return found


async def _refused(
    source: str, connection: Connection, error: MySQLError
) -> tuple[str, tuple[str, ...]]:
    """Return the meaning of a refused freeze, and its remedies."""
    found = parse_version(str((await connection.fetch("SELECT VERSION()"))[0][0]))
    rights = "SUPER"
    if found is not None and found.product == "MariaDB" and found.number >= (10, 5):
        rights = "READ_ONLY ADMIN"
    elif found is not None and found.product == "MySQL" and found.number >= (8, 0):
        rights = "SYSTEM_VARIABLES_ADMIN, CONNECTION_ADMIN"
    return f"{source} can't be made read-only: {error_text(error)}", (
        (await account_of(connection)).grant_everywhere(rights),
        f"`SET GLOBAL {READ_ONLY} = 1` on each source yourself, and switch without --freeze",
    )


async def _end_waiting(connection: Connection) -> None:
    """End freezing statements that still wait for a lock, although their command has ended."""
    while waiting := [
        row[0]
        for row in await connection.fetch("SHOW FULL PROCESSLIST")
        if str(row[7]).startswith("SET GLOBAL") and str(row[7]).endswith(_MARK)
    ]:
        for thread in waiting:
            with suppress(MySQLError):  # It may have ended by itself.
                await connection.execute(f"KILL {int(thread)}")
        await anyio.sleep(_LOOK_SECONDS)


async def _variables(connection: Connection) -> dict[str, int]:
    rows = await connection.fetch(
        f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ('{READ_ONLY}', '{SUPER_READ_ONLY}')"
    )
    return {str(name).lower(): int(str(value).upper() != "OFF") for name, value in rows}
