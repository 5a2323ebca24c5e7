"""Logs in to a hostile server that is not on loopback, in a network of its own; see `main`.

Run it by ``unshare --net``: a process may give addresses to the loopback device of a new network,
which do not look like loopback.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

from pymysql.err import MySQLError

from replicator.binlog.errors import BinlogError
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.errors import DatabaseUnavailableError
from tests.support.servers.connection_kinds import LOGINS
from tests.support.servers.password_thief import HostileServer, goes_on

ADDRESS = "10.77.0.1"
PASSWORD = "hidden word"


def main() -> None:
    """Print for each kind of connection whether the server could read the password, and why not."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["ip", "address", "add", f"{ADDRESS}/32", "dev", "lo"], check=True)
    found = []
    for kind in LOGINS:
        server = HostileServer("caching_sha2_password", goes_on, host=ADDRESS)
        with server.listening() as port:
            address = DatabaseAddress(ADDRESS, port, "u", PASSWORD)
            said = ""
            try:
                asyncio.run(kind(address))
            except (MySQLError, BinlogError, DatabaseUnavailableError) as error:
                said = str(error)
        found.append([server.reads(PASSWORD), said])
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
