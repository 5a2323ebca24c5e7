"""What servers and files call things gives the terminal no orders, and forges no line."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import structlog
from rich.panel import Panel
from rich.text import Text

from replicator import logs
from replicator.checks.result import CheckResult
from replicator.mysql.names import TableName
from replicator.printable_text import printable_text, shown_json, shown_line
from replicator.status import Fault, SourceStatus, TargetStatus, TaskStatus
from replicator.terminal.checks import checks_json, render_checks
from replicator.terminal.consoles import SafeConsole, complain, tell
from replicator.terminal.status import fault_panel, render, render_tasks

EVIL = "a\x1b]0;t\x07\x1b[2Jb\x9b1m\u202ec\u2066\x7f\u200f\ud800d[red]x[/] :pile_of_poo:"
ORDERS = ("\x1b", "\x07", "\x9b", "\u202e", "\u2066", "\x7f", "\u200f", "\ud800")


def unharmed(text: str) -> bool:
    return not any(order in text for order in ORDERS)


def printed(thing: object, capsys: pytest.CaptureFixture[str]) -> str:
    SafeConsole().print(thing, soft_wrap=True)
    return capsys.readouterr().out


CODES = [
    *(*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
    *(0x2028, 0x2029, 0x200E, 0x200F, 0x61C, 0xD800, 0xDFFF),
]


@pytest.mark.parametrize("code", CODES)
def test_every_control_character_is_escaped(code: int) -> None:
    assert shown_line(f"a{chr(code)}b").isprintable()
    assert printable_text(chr(code)) == (
        chr(code) if chr(code) in "\t\n" else shown_line(chr(code))
    )
    assert json.loads(shown_json(chr(code))) == chr(code)
    assert unharmed(shown_json(EVIL))


def test_other_text_stays() -> None:
    for text in ("añ 表 😀 ‍", "\\x1b", "a`b'\"", "e\u0301", "\ufb01"):
        assert shown_line(text) == printable_text(text) == text


def test_names_are_shown_in_one_line_and_apart() -> None:
    names = [
        *("a\nb", "a\\nb", "`a\\nb`", "a\rb", "a\x1bb", "a\\x1bb", "a.b", "ab", "a\\\nb"),
    ]
    shown = [str(TableName("s", name)) for name in names]
    assert len(set(shown)) == len(names)
    assert all(text.isprintable() for text in shown)
    assert str(TableName("s", "t")) == "s.t"


@pytest.mark.parametrize(
    "thing", [EVIL, Text(EVIL), Panel(Text(EVIL), title=Text(EVIL))], ids=["str", "text", "panel"]
)
def test_a_console_prints_escapes(thing: object, capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(thing, capsys)
    assert unharmed(found)
    assert "\\x9b" in found
    assert "[red]x[/]" in found
    assert ":pile_of_poo:" in found


def status() -> TaskStatus:
    fault = Fault("x.y", f"m {EVIL}", where=EVIL, remedies=(EVIL,), since=datetime.now(UTC))
    return TaskStatus(
        task=EVIL,
        state="running",
        since=datetime.now(UTC),
        pid=1,
        sources=(SourceStatus(f"{EVIL}\nforged", EVIL),),
        targets=(TargetStatus(f"{EVIL}\nforged", members=1),),
        error=fault,
    )


def test_what_commands_show(capsys: pytest.CaptureFixture[str]) -> None:
    check = CheckResult("routes", EVIL, "failed", EVIL, (EVIL,))
    found = status()
    for thing in (
        render(found),
        render_tasks([found]),
        fault_panel(found.error, EVIL) if found.error else "",
        render_checks([check]),
    ):
        text = printed(thing, capsys)
        assert unharmed(text)
        assert "\nforged" not in text
    for line in (shown_json(found.to_dict()), checks_json("t", [check])):
        assert unharmed(line)
        assert json.loads(line)
    assert json.loads(shown_json(found.to_dict()))["task"] == EVIL
    tell(f"{EVIL}\tb\n")
    text = capsys.readouterr().out
    assert unharmed(text)
    assert text.endswith("\tb\n\n")


def test_what_a_failed_command_says(capsys: pytest.CaptureFixture[str]) -> None:
    complain(EVIL, where=EVIL, remedies=[EVIL])
    line = capsys.readouterr().err
    assert unharmed(line)
    assert json.loads(line)["error"] == EVIL


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def root_logger() -> Iterator[None]:
    before = logging.getLogger().handlers[:]
    yield
    logging.getLogger().handlers[:] = before
    structlog.reset_defaults()


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()], ids=["terminal", "pipe"])
def test_logs_are_escaped(stream: io.StringIO, root_logger: None) -> None:
    logs.configure("info", stream=stream)
    log = structlog.get_logger()
    log.info("a.b", target=f"{EVIL}\nforged", more=[EVIL], statement={"a": EVIL})
    logging.getLogger("other").warning("%s", EVIL)
    try:
        raise ValueError(EVIL)
    except ValueError:
        log.exception("failed")
    text = stream.getvalue()
    # The colours of the log itself.
    assert unharmed(re.sub(r"\x1b\[\d*m", "", text))
    assert "\nforged" not in text
    if not stream.isatty():
        assert json.loads(text.splitlines()[0])["target"] == f"{EVIL}\nforged"
