"""The settings of a source that decide whether its binlog can be followed."""

from __future__ import annotations

from collections.abc import Mapping

from replicator.checks.result import CheckedPart, CheckResult

SHORT_EXPIRY = 24 * 3600
"""Seconds; binlogs that go sooner are gone after a weekend's pause, or a long full copy."""

VARIABLES = (
    "log_bin",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "binlog_row_value_options",
    "binlog_checksum",
    "server_id",
    "binlog_expire_logs_seconds",
    "expire_logs_days",
)
"""Global variables that `check_binlog_settings` reads; servers do not know all of them."""

_RECONNECT = "sessions that are open keep the old value until they reconnect"


def check_binlog_settings(place: CheckedPart, variables: Mapping[str, str]) -> list[CheckResult]:
    """Judge the global variables, names in lower case, of a source."""
    if not _on(variables.get("log_bin", "")):
        return [
            place.failed(
                "binlog_enable",
                "the server writes no binlog (log_bin is OFF)",
                "Add to the server's my.cnf under [mysqld] and restart it: "
                "log_bin=mysql-bin, binlog_format=ROW, binlog_row_image=FULL, "
                "server_id=<a number that no other server has>",
            )
        ]
    return [
        place.passed("binlog_enable", "the server writes a binlog"),
        _format(place, variables),
        _image(place, variables),
        _metadata(place, variables),
        _checksum(place, variables),
        _server_id(place, variables),
        _expiry(place, variables),
    ]


def _on(value: str) -> bool:
    return value.upper() in {"ON", "1"}


def _format(place: CheckedPart, variables: Mapping[str, str]) -> CheckResult:
    found = variables.get("binlog_format", "").upper()
    if found == "ROW":
        return place.passed("binlog_format", "binlog_format is ROW")
    return place.failed(
        "binlog_format",
        f"binlog_format is {found or 'not known'}: the binlog holds statements, whose rows "
        "cannot be known",
        "SET GLOBAL binlog_format = 'ROW'; and the same in my.cnf; " + _RECONNECT,
    )


def _image(place: CheckedPart, variables: Mapping[str, str]) -> CheckResult:
    # A server that lacks the variable (MariaDB before 10.1.6) writes full images.
    found = variables.get("binlog_row_image", "FULL").upper()
    if found != "FULL":
        return place.failed(
            "binlog_row_image",
            f"binlog_row_image is {found}: row events lack columns",
            "SET GLOBAL binlog_row_image = 'FULL'; and the same in my.cnf; " + _RECONNECT,
        )
    if "PARTIAL_JSON" in variables.get("binlog_row_value_options", "").upper():
        return place.failed(
            "binlog_row_image",
            "binlog_row_value_options is PARTIAL_JSON: row events hold only parts of JSON values",
            "SET GLOBAL binlog_row_value_options = ''; and the same in my.cnf; " + _RECONNECT,
        )
    return place.passed("binlog_row_image", "binlog_row_image is FULL")


def _metadata(place: CheckedPart, variables: Mapping[str, str]) -> CheckResult:
    found = variables.get("binlog_row_metadata", "").upper()
    if found == "FULL":
        return place.passed(
            "binlog_row_metadata", "binlog_row_metadata is FULL: rows name their columns"
        )
    return place.passed(
        "binlog_row_metadata",
        f"binlog_row_metadata is {found or 'not known to this server'}: structures are taken "
        "from the server and followed through its DDL; FULL would allow to verify them",
    )


def _checksum(place: CheckedPart, variables: Mapping[str, str]) -> CheckResult:
    found = variables.get("binlog_checksum", "").upper() or "not known to this server"
    if found == "CRC32":
        return place.passed("binlog_checksum", "binlog_checksum is CRC32: damaged events show")
    return place.warning(
        "binlog_checksum",
        f"binlog_checksum is {found}: an event that is damaged on the source's disk or on its way "
        "can look like a sound one with other values",
        "SET GLOBAL binlog_checksum = 'CRC32'; and the same in my.cnf; the server begins a new "
        "binlog file for it, and the task reads on across the change",
    )


def _server_id(place: CheckedPart, variables: Mapping[str, str]) -> CheckResult:
    found = variables.get("server_id", "0")
    if found == "0":
        return place.failed(
            "server_id",
            "the source's server_id is 0: it refuses replicas",
            "SET GLOBAL server_id = <a number that no other server has>; and the same in my.cnf",
        )
    return place.passed("server_id", f"the source's server_id is {found}")


def _expiry(place: CheckedPart, variables: Mapping[str, str]) -> CheckResult:
    seconds = float(variables.get("binlog_expire_logs_seconds") or 0)
    # MySQL 8 has both and takes the one that is not zero; MariaDB 10.6 keeps both equal.
    seconds = seconds or float(variables.get("expire_logs_days") or 0) * 86400
    if not seconds:
        return place.passed("binlog_expire", "binlogs are never purged by age")
    if seconds >= SHORT_EXPIRY:
        return place.passed("binlog_expire", f"binlogs are kept for {seconds / 3600:.0f} hours")
    return place.warning(
        "binlog_expire",
        f"binlogs are kept for {seconds / 3600:.1f} hours only: after a pause or a full copy "
        "longer than that, the task cannot go on",
        "SET GLOBAL binlog_expire_logs_seconds = 604800; (or expire_logs_days = 7, on servers "
        "without it) and the same in my.cnf",
    )
