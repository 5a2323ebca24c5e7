"""The certificate of a switch.

The tables that a finished task has merged, and up to which position.

Its JSON form has the names of the attributes here, and `version`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from replicator.status_json import ShapeError, plain, shaped

VERSION = 1


class CertificateError(Exception):
    """The text is not a certificate, or is a certificate of another version."""


@dataclass(frozen=True, slots=True)
class SwitchedSource:
    """A source, and the end of its binlog while the source was read-only.

    The task has applied all changes up to this end.

    Attributes:
        source: id of the source in the task file.
        server_id: the server's `server_id`.
        server_uuid: the server's `server_uuid`; empty for MariaDB.
        file: binlog file of the end.
        offset: offset of the end.
        gtid: GTID set of the server at the end; empty if it has none.
        frozen: whether the switch itself made the source read-only.
    """

    source: str
    server_id: int
    server_uuid: str
    file: str
    offset: int
    gtid: str
    frozen: bool = False


@dataclass(frozen=True, slots=True)
class TargetPosition:
    """The end of the target's binlog after its last row was applied; empty without a binlog.

    Attributes:
        file: binlog file of the end.
        offset: offset of the end.
        gtid: GTID set of the server at the end; empty if it has none.
        remark: the reason why there is no position, or why rows after it can't be read.
    """

    file: str = ""
    offset: int = 0
    gtid: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True)
class SwitchedShard:
    """A shard of a target; `rows` is None if its rows were not counted."""

    source: str
    schema: str
    table: str
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class SwitchedTarget:
    """A target, and the result of its comparison.

    Attributes:
        schema: schema of the target.
        table: name of the target.
        shards: the shards that were merged into it.
        rows: number of rows of the target at `compared_at`.
        checksum: the sum of the checksums of its rows at `compared_at`, as hexadecimal digits;
            empty if none was computed.
        compared: the extent of the comparison, as a sentence.
        compared_at: when the last comparison of all rows ended; None if there was none.
        frozen: whether this comparison was made while the sources were read-only.
        auto_increment: the next value of its AUTO_INCREMENT column; None without such a column.
    """

    schema: str
    table: str
    shards: tuple[SwitchedShard, ...]
    rows: int
    checksum: str
    compared: str
    compared_at: datetime | None
    frozen: bool
    auto_increment: int | None = None


@dataclass(frozen=True, slots=True)
class SwitchCertificate:
    """The whole certificate.

    Attributes:
        task: name of the task.
        switched_at: when the task was marked as finished.
        frozen_at: when all sources were read-only.
        sources: the sources, each with the end of its binlog.
        target: position of the target's binlog.
        targets: the targets.
        version: version of the JSON form.
    """

    task: str
    switched_at: datetime
    frozen_at: datetime
    sources: tuple[SwitchedSource, ...]
    target: TargetPosition
    targets: tuple[SwitchedTarget, ...]
    version: int = VERSION

    def to_json(self) -> str:
        """Return the JSON form."""
        return json.dumps(plain(self), ensure_ascii=False, indent=2)

    @staticmethod
    def from_json(text: str) -> SwitchCertificate:
        """Return the certificate in this JSON text. Raises CertificateError."""
        try:
            values = json.loads(text)
            found = shaped(SwitchCertificate, values)
        except (ValueError, ShapeError) as error:
            raise CertificateError(f"this is no certificate of a switch: {error}") from error
        if found.version != VERSION:
            raise CertificateError(
                f"the certificate has version {found.version}; this program reads {VERSION}"
            )
        return found
