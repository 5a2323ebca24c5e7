from __future__ import annotations

import pytest

from replicator.binlog.connection.server_info import parse_server_info
from replicator.binlog.errors import BinlogError
from replicator.mysql.server_kind import ServerKind


@pytest.mark.parametrize(
    ("version", "comment", "kind", "numbers"),
    [
        ("10.11.6-MariaDB-0+deb12u1-log", "Debian 12", ServerKind.MARIADB, (10, 11, 6)),
        ("5.5.5-10.4.8-MariaDB", "", ServerKind.MARIADB, (10, 4, 8)),
        ("11.4.2", "MariaDB Server", ServerKind.MARIADB, (11, 4, 2)),
        ("5.6.24-log", "MySQL Community Server (GPL)", ServerKind.MYSQL_BEFORE_8, (5, 6, 24)),
        ("8.4.0", "MySQL Community Server - GPL", ServerKind.MYSQL, (8, 4, 0)),
    ],
)
def test_flavor_and_version_are_told_from_the_variables(
    version: str, comment: str, kind: ServerKind, numbers: tuple[int, ...]
) -> None:
    info = parse_server_info({"version": version, "version_comment": comment, "server_id": "3"})
    assert (info.kind, info.version) == (kind, numbers)
    assert (info.server_id, info.checksum, info.gtid_mode) == (3, "NONE", "")


def test_an_unreadable_version() -> None:
    with pytest.raises(BinlogError, match="unknown"):
        parse_server_info({"version": "unknown"})


@pytest.mark.parametrize(
    ("value", "folds"), [("0", False), ("1", True), ("2", True), (None, False)]
)
def test_whether_names_of_tables_have_a_case(value: str | None, folds: bool) -> None:
    told = {} if value is None else {"lower_case_table_names": value}
    assert parse_server_info({"version": "8.4.0", **told}).folds_names is folds
