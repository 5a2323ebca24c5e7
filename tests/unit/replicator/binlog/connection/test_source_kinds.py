from __future__ import annotations

import pytest

from replicator.binlog.connection.source_kinds import Flavor, parse_server_info
from replicator.binlog.errors import BinlogError


@pytest.mark.parametrize(
    ("version", "comment", "flavor", "numbers"),
    [
        ("10.11.6-MariaDB-0+deb12u1-log", "Debian 12", Flavor.MARIADB, (10, 11, 6)),
        ("5.5.5-10.4.8-MariaDB", "", Flavor.MARIADB, (10, 4, 8)),
        ("11.4.2", "MariaDB Server", Flavor.MARIADB, (11, 4, 2)),
        ("5.6.24-log", "MySQL Community Server (GPL)", Flavor.MYSQL, (5, 6, 24)),
        ("8.4.0", "MySQL Community Server - GPL", Flavor.MYSQL, (8, 4, 0)),
    ],
)
def test_flavor_and_version_are_told_from_the_variables(
    version: str, comment: str, flavor: Flavor, numbers: tuple[int, ...]
) -> None:
    info = parse_server_info({"version": version, "version_comment": comment, "server_id": "3"})
    assert (info.flavor, info.version) == (flavor, numbers)
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
