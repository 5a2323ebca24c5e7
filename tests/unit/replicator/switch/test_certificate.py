"""The JSON form of a certificate."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from replicator.switch.certificate import (
    CertificateError,
    SwitchCertificate,
    SwitchedShard,
    SwitchedSource,
    SwitchedTarget,
    TargetPosition,
)

AT = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)
CERTIFICATE = SwitchCertificate(
    "orders",
    AT,
    AT,
    (SwitchedSource("a", 1, "", "bin.000002", 345, "0-1-42", frozen=True),),
    TargetPosition(remark="the target writes no binlog"),
    (
        SwitchedTarget(
            "shop",
            "orders",
            (SwitchedShard("a", "shop_1", "orders", 7), SwitchedShard("a", "shop_2", "orders")),
            7,
            "00ff",
            "all rows",
            AT,
            frozen=True,
        ),
    ),
)


def test_a_certificate_is_read_as_it_was_written() -> None:
    text = CERTIFICATE.to_json()
    assert SwitchCertificate.from_json(text) == CERTIFICATE
    values = json.loads(text)
    assert values["version"] == 1
    assert values["switched_at"] == "2026-11-29T12:00:00Z"
    assert values["sources"][0]["gtid"] == "0-1-42"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "no certificate"),
        ("{}", "task: it is missing"),
        (CERTIFICATE.to_json().replace('"version": 1', '"version": 2'), "version 2"),
    ],
)
def test_another_text_is_refused(text: str, why: str) -> None:
    with pytest.raises(CertificateError, match=why):
        SwitchCertificate.from_json(text)
