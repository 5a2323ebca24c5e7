"""Versions and settings of a source: which pass, and which are reported with their remedies."""

from __future__ import annotations

import pytest

from replicator.checks.check_items import CHECKS, unknown_items
from replicator.checks.result import CheckedPart
from replicator.checks.source.source_checks import check_binlog_settings
from replicator.checks.supported_servers import check_version, parse_version

GOOD = {
    "log_bin": "ON",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "server_id": "7",
    "expire_logs_days": "0",
    "binlog_checksum": "CRC32",
}
PLACE = CheckedPart("a")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.11.6-MariaDB-0+deb12u1-log", "MariaDB 10.11.6"),
        ("5.5.5-10.4.2-MariaDB", "MariaDB 10.4.2"),
        ("5.6.24-log", "MySQL 5.6.24"),
        ("8.0.11-TiDB-v7.5.0", "TiDB 7.5.0"),
        ("5.7.25-TiDB-v7.5.1-alpha", "TiDB 7.5.1"),
        ("next", "None"),
    ],
)
def test_versions_are_read_from_the_servers_text(text: str, expected: str) -> None:
    assert str(parse_version(text)) == expected


@pytest.mark.parametrize(
    ("text", "as_source", "state"),
    [
        ("10.1.48-MariaDB", True, "failed"),
        ("5.5.62", False, "failed"),
        ("8.0.11-TiDB-v7.5.0", True, "failed"),
        ("8.0.11-TiDB-v7.5.0", False, "passed"),
        ("8.4.2", True, "passed"),
        ("?", True, "warning"),
    ],
)
def test_versions_that_are_too_old_or_untested_are_told(
    text: str, state: str, *, as_source: bool
) -> None:
    assert check_version(PLACE, text, as_source=as_source).state == state


def test_good_settings_pass() -> None:
    assert {result.state for result in check_binlog_settings(PLACE, GOOD)} == {"passed"}


@pytest.mark.parametrize(
    ("name", "value", "check", "state"),
    [
        ("log_bin", "OFF", "binlog_enable", "failed"),
        ("binlog_format", "MIXED", "binlog_format", "failed"),
        ("binlog_row_image", "NOBLOB", "binlog_row_image", "failed"),
        ("binlog_row_value_options", "PARTIAL_JSON", "binlog_row_image", "failed"),
        ("server_id", "0", "server_id", "failed"),
        ("binlog_expire_logs_seconds", "3600", "binlog_expire", "warning"),
        ("binlog_checksum", "NONE", "binlog_checksum", "warning"),
        ("binlog_checksum", "none", "binlog_checksum", "warning"),
        ("binlog_checksum", "", "binlog_checksum", "warning"),
    ],
)
def test_each_bad_setting_is_told_with_its_remedies(
    name: str, value: str, check: str, state: str
) -> None:
    bad = [r for r in check_binlog_settings(PLACE, {**GOOD, name: value}) if r.state != "passed"]
    assert [(r.name, r.state) for r in bad] == [(check, state)]
    assert bad[0].remedies


def test_a_misspelt_item_is_told_with_the_right_name() -> None:
    (found,) = unknown_items(["binlog_formt", "version", "conn_number"])
    assert found.state == "warning"
    assert "binlog_format?" in found.remedies[0]
    assert unknown_items(CHECKS) == []
