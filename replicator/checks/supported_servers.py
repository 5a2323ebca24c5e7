"""The servers that a task supports: their kinds, and the oldest version of each kind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from replicator.checks.result import CheckedPart, CheckResult
from replicator.mysql.connection.asyncio_connection import Connection

Product = Literal["MariaDB", "MySQL", "TiDB"]

OLDEST: dict[Product, tuple[int, int, int]] = {
    "MariaDB": (10, 2, 0),
    "MySQL": (5, 6, 0),
    "TiDB": (5, 0, 0),
}
"""The oldest supported version of each server."""


@dataclass(frozen=True, slots=True)
class ServerVersion:
    """A server's product and its version number."""

    product: Product
    number: tuple[int, int, int]

    def __str__(self) -> str:
        return f"{self.product} {'.'.join(map(str, self.number))}"


def parse_version(text: str) -> ServerVersion | None:
    """Parse the result of ``SELECT VERSION()``; None if it has no version number.

    MariaDB returns ``10.11.6-MariaDB-log``, sometimes after ``5.5.5-``. TiDB returns
    ``8.0.11-TiDB-v7.5.0``, with the MySQL version that it is compatible with first.
    """
    if tidb := re.search(r"TiDB-v?(\d+)\.(\d+)(?:\.(\d+))?", text):
        product: Product = "TiDB"
        found = tidb
    else:
        product = "MariaDB" if "mariadb" in text.lower() else "MySQL"
        plain = text.removeprefix("5.5.5-") if product == "MariaDB" else text
        match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", plain)
        if match is None:
            return None
        found = match
    major, minor, patch = found.groups(default="0")
    return ServerVersion(product, (int(major), int(minor), int(patch)))


def check_version(place: CheckedPart, text: str, *, as_source: bool) -> CheckResult:
    """Check whether a server with this version text can be a source, or the target."""
    version = parse_version(text)
    supported = "MariaDB 10.2 and MySQL 5.6 or newer"
    if not as_source:
        supported += ", TiDB 5.0 or newer"
    if version is None:
        return place.warning(
            "version",
            f"the version {text!r} is unknown",
            f"Make sure that the server is one of: {supported}",
        )
    if as_source and version.product == "TiDB":
        return place.failed(
            "version",
            f"{version} writes no MySQL binlog and cannot be a source",
            f"Name a server under 'from:' that is one of: {supported}",
        )
    if version.number < OLDEST[version.product]:
        return place.failed(
            "version",
            f"{version} is older than the supported versions",
            f"Upgrade the server; supported are {supported}",
        )
    return place.passed("version", str(version))


async def global_variables(connection: Connection, names: Sequence[str]) -> dict[str, str]:
    """Return the values by lower-case name; variables that the server does not know are missing."""
    places = ", ".join(["%s"] * len(names))
    rows = await connection.fetch(
        f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({places})", tuple(names)
    )
    return {str(name).lower(): str(value) for name, value in rows}
