"""What the driver's side of Spark says, where the JVM dies."""

from __future__ import annotations

import socket
from typing import NoReturn

import pytest
from pyspark import SparkContext
from pyspark.accumulators import AccumulatorTCPServer
from structlog.testing import capture_logs

from replicator.pipeline.spark import jvm


def test_a_connection_of_the_jvm_that_breaks_off_goes_into_the_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_gateway(*arguments: object) -> NoReturn:
        raise OSError("no JVM")

    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(jvm, "launch_gateway", no_gateway)
    with pytest.raises(OSError, match="no JVM"):
        jvm.start_jvm({})
    with (
        AccumulatorTCPServer(("127.0.0.1", 0), None, "secret") as server,  # type: ignore[arg-type]
        capture_logs() as logs,
        socket.create_connection(("127.0.0.1", int(server.server_address[1]))),
    ):
        # There is nothing that could answer it.
        server.handle_request()
    assert capsys.readouterr().err == ""
    [told] = [entry for entry in logs if "Traceback" in entry.get("text", "")]
    assert told["event"] == "spark.output"
