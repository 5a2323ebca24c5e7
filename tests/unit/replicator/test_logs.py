from __future__ import annotations

import contextlib
import io
import json
import logging
import shutil
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


def test_a_folder_that_is_gone_is_told_once_and_that_it_is_back(tmp_path: Path) -> None:
    out, path = io.StringIO(), tmp_path / "logs" / "log"
    path.parent.mkdir()
    configure(log_file=path, stream=out)
    log = structlog.get_logger()
    log.info("a.before")
    shutil.rmtree(path.parent)
    for _ in range(50):
        log.info("a.meanwhile")
    told = [record for record in lines(out.getvalue()) if record["event"] == "log.file-lost"]
    assert len(told) == 1
    assert told[0]["file"] == str(path)
    assert "No such file" in told[0]["reason"]
    assert len(lines(out.getvalue())) == 52, "no line is anything but a record"
    path.parent.mkdir()
    log.info("a.after")
    log.info("a.later")
    events = [record["event"] for record in lines(path.read_text())]
    assert events == ["a.after", "log.file-back", "a.later"]
    assert lines(path.read_text())[1]["lost_records"] == 50
    assert [r["event"] for r in lines(out.getvalue())][-3:] == events


def test_a_full_disk_is_told_once_and_leaves_whole_lines(tmp_path: Path) -> None:
    out, path = io.StringIO(), tmp_path / "log"
    path.symlink_to("/dev/full")
    configure(log_file=path, stream=out)
    log = structlog.get_logger()
    for _ in range(50):
        log.info("a.meanwhile")
    assert [r["event"] for r in lines(out.getvalue())].count("log.file-lost") == 1
    assert len(lines(out.getvalue())) == 51
    path.unlink()
    path.write_text('{"event": "torn')
    log.info("a.after")
    torn, *whole = path.read_text().splitlines()
    assert torn == '{"event": "torn'
    assert [json.loads(line)["event"] for line in whole] == ["a.after", "log.file-back"]


def test_a_rotated_log_file_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "log"
    configure(log_file=path, stream=io.StringIO())
    structlog.get_logger().info("a.before")
    path.rename(tmp_path / "log.1")
    structlog.get_logger().info("a.after")
    assert [r["event"] for r in lines((tmp_path / "log.1").read_text())] == ["a.before"]
    assert [r["event"] for r in lines(path.read_text())] == ["a.after"]


def test_a_log_file_is_rotated_by_its_size_and_five_older_ones_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "task.log"
    configure("info", path, stream=io.StringIO(), most_bytes=1000)
    for number in range(100):
        structlog.get_logger().info("task.progress", number=number, filler="x" * 80)
    names = ["task.log", *(f"task.log.{n}" for n in range(1, 6))]
    found = {file.name: file for file in tmp_path.iterdir()}
    assert set(found) in (set(names), set(names[1:]))
    numbers = [
        json.loads(line)["number"]
        for name in reversed(names)
        if name in found
        for line in found[name].read_text().splitlines()
    ]
    assert numbers == [*range(numbers[0], 100)]
    assert 30 < len(numbers) < 100
    assert all(file.stat().st_size < 1300 for file in found.values())


def test_an_output_that_takes_nothing_is_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    with open("/dev/full", "w") as full:
        configure(stream=full)
        structlog.get_logger().info("a.b")
        with contextlib.suppress(OSError):
            full.close()
    assert capsys.readouterr().err == ""


def test_a_warning_about_how_things_are_is_told_once() -> None:
    out = io.StringIO()
    configure(task="orders", stream=out)
    for _ in range(112):
        log = structlog.get_logger().bind(task="orders")
        log.warning("route.unused", source="a", message="route x matches nothing")
        log.warning("source.lost", source="a")
    log.warning("route.unused", source="b", message="route x matches nothing")
    for position in ("f.1:4", "f.1:9", "f.1:4", "f.1:9"):
        # A source that is read again comes to the same statements.
        log.warning("ddl.not-executed", source=position, statement="TRUNCATE t", position=position)
    found = [(r["event"], r["source"]) for r in lines(out.getvalue())]
    assert [at for event, at in found if event == "ddl.not-executed"] == ["f.1:4", "f.1:9"]
    assert found.count(("route.unused", "a")) == 1
    assert found.count(("route.unused", "b")) == 1
    assert found.count(("source.lost", "a")) == 112
