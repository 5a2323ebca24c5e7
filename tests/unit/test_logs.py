from __future__ import annotations

import io
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from replicator.logs import LogFileError, configure


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """What pytest itself hangs onto the root logger comes back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []
    yield
    for handler in root.handlers:
        handler.close()
    root.handlers = handlers
    root.setLevel(level)
    logging.captureWarnings(False)
    structlog.reset_defaults()


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_records_are_json_lines_where_no_terminal_is() -> None:
    out = io.StringIO()
    configure(task="orders", stream=out)
    structlog.get_logger().info("source.started", source="a", position="bin.000001:4")
    (record,) = lines(out.getvalue())
    assert record.pop("timestamp").endswith("Z")
    assert record == {
        "event": "source.started",
        "level": "info",
        "task": "orders",
        "source": "a",
        "position": "bin.000001:4",
    }


def test_threads_and_the_standard_library_get_the_task_too() -> None:
    out = io.StringIO()
    configure(task="orders", stream=out)
    thread = threading.Thread(target=lambda: structlog.get_logger().info("a.b"))
    thread.start()
    thread.join()
    logging.getLogger("elsewhere").warning("lost %s", "it")
    first, second = lines(out.getvalue())
    assert (first["event"], first["task"]) == ("a.b", "orders")
    assert (second["event"], second["task"], second["level"]) == ("lost it", "orders", "warning")


def test_a_terminal_gets_text_and_the_file_json(tmp_path: Path) -> None:
    out, path = Terminal(), tmp_path / "log"
    configure(log_file=path, stream=out)
    structlog.get_logger().info("source.started", source="a")
    assert "source.started" in out.getvalue()
    assert not out.getvalue().startswith("{")
    assert [record["event"] for record in lines(path.read_text())] == ["source.started"]


def test_the_level_holds_back_what_is_below_it() -> None:
    out = io.StringIO()
    configure("warning", stream=out)
    structlog.get_logger().info("quiet.one")
    structlog.get_logger().warning("loud.one")
    assert [record["event"] for record in lines(out.getvalue())] == ["loud.one"]


def test_configuring_again_replaces_the_first() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure(stream=first)
    log = structlog.get_logger()
    configure(stream=second)
    log.info("one.line")
    assert first.getvalue() == ""
    assert len(lines(second.getvalue())) == 1


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_secrets_and_local_variables_stay_out(stream: type[io.StringIO]) -> None:
    out = stream()
    configure(stream=out)
    hidden = "pa55" + "word"
    try:
        raise ValueError("bad")
    except ValueError:
        structlog.get_logger().exception(
            "target.lost", password=hidden, server={"host": "h", "Old-Password": hidden}
        )
    assert "ValueError" in out.getvalue()
    assert "target.lost" in out.getvalue()
    assert hidden not in out.getvalue()


def test_a_log_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(LogFileError, match="--log-file"):
        configure(log_file=tmp_path / "missing" / "log", stream=io.StringIO())
