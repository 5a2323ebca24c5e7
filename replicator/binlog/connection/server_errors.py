"""The meaning of a server's error numbers for a binlog stream: retry, or stop and report."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pymysql.constants import CR, ER

from replicator.binlog.errors import (
    AccessRefusedError,
    BinlogError,
    GtidModeError,
    PurgedError,
    StreamLostError,
    WithoutGtidError,
)
from replicator.mysql.errors import ACCOUNT_LOCKED, LOST, PASSWORD_EXPIRED, ErrorCode

_TRANSIENT = LOST | {
    0,  # the server ended the stream
    ER.NET_PACKET_TOO_LARGE,
    ER.QUERY_INTERRUPTED,
}

_ADVICE: dict[int, str] = {
    ER.DBACCESS_DENIED_ERROR: "Check the grants of the user.",
    ER.ACCESS_DENIED_ERROR: "Check user and password of the source.",
    ER.HOST_NOT_PRIVILEGED: "The server does not let this host in: create the user for this host.",
    ER.TABLEACCESS_DENIED_ERROR: "Check the grants of the user.",
    ER.UNKNOWN_SYSTEM_VARIABLE: "The server is too old: MySQL 5.6 or MariaDB 10.2 is"
    " the oldest that is supported.",
    ER.SPECIFIC_ACCESS_DENIED_ERROR: "GRANT REPLICATION SLAVE, REPLICATION CLIENT"
    " ON *.* to the user (MariaDB 10.5+: REPLICATION SLAVE, BINLOG MONITOR).",
    ER.NO_BINARY_LOGGING: "The server writes no binlog: start it with --log-bin.",
    ErrorCode.ER_ACCESS_DENIED_NO_PASSWORD_ERROR: "Check user and password of the source.",
    **dict.fromkeys(
        PASSWORD_EXPIRED,
        "The password has expired: ALTER USER … IDENTIFIED BY, and the new one into the task file.",
    ),
    **dict.fromkeys(ACCOUNT_LOCKED, "Unlock it: ALTER USER … ACCOUNT UNLOCK."),
    CR.CR_AUTH_PLUGIN_ERR: "Name the authority of the server's certificate in"
    " security.ssl-ca, or the server's key in security.server-public-key-path, or set"
    " security.get-server-public-key: true.",
    CR.CR_AUTH_PLUGIN_CANNOT_LOAD: "The user's authentication plugin is not supported by"
    " this client.",
}

_NO_ACCESS = frozenset(_ADVICE) - {
    ER.UNKNOWN_SYSTEM_VARIABLE,
    ER.NO_BINARY_LOGGING,
}

_PURGED_TEXT = (
    "could not find first log file",
    "could not find gtid state",
    "purged",
    "position > file size",
    "position < 4",
    "impossible position",
    "not in the master's binlog",
    "more gtids than the master",
    "more gtids than the source",
    "could not find",
)


_WHERE_READ = re.compile(
    r"the first event '(?:\./)?(?P<first>[^']*)' at (?P<at>\d+), "
    r"the last event read from '(?:\./)?(?P<last>[^']*)' at (?P<last_at>\d+)"
)
"""The positions of the first and the last event read; equal if even the first was unreadable."""


_GTID_MODE = re.compile(r"(found a gtid_log_event.*)?@@global\.gtid_mode *= *(on|off)")
"""The mode because of which the server refuses transactions written in another mode."""


@dataclass(frozen=True, slots=True)
class StreamRequest:
    """The request for a stream, for messages: ``host:port``, the start, the server id."""

    server: str
    start: str
    server_id: int


def translate(
    code: int, message: str, request: StreamRequest, *, logged_in: bool, available: str = ""
) -> BinlogError | StreamLostError:
    """Return the exception for a server's (or client's) error number and text.

    It is StreamLostError if reconnecting can help, and BinlogError if it can't.

    Args:
        logged_in: whether the login had succeeded; some servers report a missing privilege like a
            wrong password.
        available: a sentence about the server's binlogs, for a start that it does not have.
    """
    where = f"{request.server}: {message} (error {code})"
    if code in _TRANSIENT:
        return StreamLostError(f"The binlog stream was lost. {where}")
    if code in (ER.MASTER_FATAL_ERROR_READING_BINLOG, ErrorCode.ER_SLAVE_SAME_ID):
        return _translate_dump_error(message, request, available)
    if logged_in and code == ER.ACCESS_DENIED_ERROR:
        code = ER.SPECIFIC_ACCESS_DENIED_ERROR
    advice = _ADVICE.get(code, "The binlog can't be read until this is resolved.")
    kind = AccessRefusedError if code in _NO_ACCESS else BinlogError
    return kind(f"The binlog can't be read from {where}. {advice}")


def _translate_dump_error(message: str, request: StreamRequest, available: str) -> BinlogError:
    """Distinguish the many meanings of the dump thread's error by its text."""
    message = message.rstrip(".")
    text = message.lower()
    if "auto_position" in text and "anonymous" in text:
        return WithoutGtidError(
            f"The binlog of {request.server} has transactions without a GTID (gtid_mode was not ON"
            f" then) after {request.start}: {message}"
        )
    if "auto_position" in text and "purged" not in text:
        return BinlogError(
            f"{request.server} can look for GTIDs only with gtid_mode=ON: {message}. Set it there"
            " step by step (OFF_PERMISSIVE, ON_PERMISSIVE, ON)."
        )
    mode = _GTID_MODE.search(text)
    if mode:
        what = "with" if mode[2] == "off" else "without"
        wanted = "OFF_PERMISSIVE" if mode[2] == "off" else "ON_PERMISSIVE"
        if mode[1]:
            # MySQL 5.6 has no other modes.
            wanted = "ON"
        return GtidModeError(
            f"gtid_mode of {request.server} was changed, and the server refuses to send the"
            f" transactions {what} GTIDs that were written before the change and that the task has"
            f" not read yet, from {request.start} on: {message}. Nothing is lost or damaged",
            wanted,
        )
    read = _WHERE_READ.search(message)
    if read and (read["first"], read["at"]) == (read["last"], read["last_at"]):
        return PurgedError(
            f"{request.server} has no event at {request.start}: {message}. The position is not"
            f" the beginning of an event, or the file is damaged there. {available} SHOW"
            " BINLOG EVENTS names the positions of events."
        )
    if "same server_uuid" in text or "same server_id" in text or "same server id" in text:
        return BinlogError(
            f"{request.server} dropped this stream because another replica connected with the same "
            f"server id {request.server_id}: {message}. If that is another process of this"
            " task, the task's lease in the meta schema names its host, and only one of the two can"
            " write: stop one of them. Any other replica needs a server-id of its own."
        )
    if "max_allowed_packet" in text:
        return BinlogError(
            f"{request.server} can't send an event that is larger than its max_allowed_packet: "
            f"{message}. SET GLOBAL max_allowed_packet=1073741824 there and resume."
        )
    if any(part in text for part in _PURGED_TEXT):
        return PurgedError(
            f"{request.server} no longer has the requested binlog position, {request.start}:"
            f" {message}. {available} The changes in between are not available there, and a start"
            " after them would leave them out. Keep binlogs longer on the source to prevent it."
        )
    return BinlogError(
        f"{request.server} can't read its own binlog, asked from {request.start}: {message}. "
        "Check the server's error log and disk; data after this position may be damaged."
    )
