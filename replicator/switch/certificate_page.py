"""A certificate as an HTML page: one file that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from xml.etree import ElementTree as ET  # nosec B405: it makes a document, and reads none

from replicator.monitoring.page_elements import (
    add_table,
    add_text,
    as_document,
    clock,
    empty_page,
)
from replicator.switch.certificate import SwitchCertificate, SwitchedTarget


def certificate_page(certificate: SwitchCertificate) -> str:
    """Return the page. Names from servers are escaped in it, whatever characters they have."""
    html, body = empty_page(f"Certificate of {certificate.task}")
    add_text(body, "h1", f"Certificate of {certificate.task}")
    add_text(
        body,
        "p",
        f"The targets have all rows of their shards. The sources were read-only from"
        f" {clock(certificate.frozen_at)} on; the task ended at {clock(certificate.switched_at)}.",
    )
    add_text(body, "h2", "Sources")
    add_table(
        body,
        ["source", "server", "end of the binlog", "GTIDs", "made read-only by"],
        [
            (
                source.source,
                f"{source.server_id} {source.server_uuid}".strip(),
                f"{source.file}:{source.offset}",
                source.gtid or "-",
                "the switch" if source.frozen else "the operator",
            )
            for source in certificate.sources
        ],
    )
    add_text(body, "h2", "Target")
    position = certificate.target
    at = f"{position.file}:{position.offset}" if position.file else "no position"
    text = ". ".join(filter(None, (f"End of its binlog: {at}", position.gtid, position.remark)))
    add_text(body, "p", text)
    for target in certificate.targets:
        _section(ET.SubElement(body, "section"), target)
    return as_document(html)


def _section(box: ET.Element, target: SwitchedTarget) -> None:
    add_text(box, "h2", f"{target.schema}.{target.table}")
    figures = [f"{target.rows:,} rows"]
    if target.checksum:
        figures.append(f"checksum {target.checksum}")
    if target.auto_increment is not None:
        figures.append(f"continues at {target.auto_increment:,}")
    add_text(box, "p", ", ".join(figures))
    add_text(box, "p", f"Compared: {target.compared} ({_at(target.compared_at)})", "dim")
    rows: Sequence[tuple[str, str]] = [
        (
            f"{shard.source}: {shard.schema}.{shard.table}",
            "-" if shard.rows is None else f"{shard.rows:,}",
        )
        for shard in target.shards
    ]
    add_table(box, ["shard", "rows#"], rows)


def _at(at: datetime | None) -> str:
    return clock(at) if at else "never"
