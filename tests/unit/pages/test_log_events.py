"""The table of events says what is logged, and the pages of log and warnings say the same."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from replicator.events.all_events import EVENTS
from replicator.logs import _LOGGED_ONCE
from scripts.check_warnings import CHECK_WARNINGS
from scripts.events_reference import log_page, warnings_page
from tests.support.logged_events import ROOT, PutTogetherError, logged, logged_in

TABLE = {event.name: event for event in EVENTS}
PLAIN = {event.name: event for event in EVENTS if not event.fault}


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_every_event_that_is_logged_is_in_the_table_with_its_level_and_fields() -> None:
    calls = logged()
    assert {"source.connected", "task.paused", "command.failed", "online-ddl.started"} <= {
        call.event for call in calls
    }
    wrong = [
        call
        for call in calls
        if call.event not in PLAIN
        or call.level not in PLAIN[call.event].levels
        or not call.fields <= PLAIN[call.event].fields.keys()
    ]
    assert wrong == [], "say in replicator/events/ what they mean, their level and their fields"


def test_every_event_of_the_table_is_logged_with_all_its_levels_and_fields() -> None:
    calls = logged()
    told: dict[str, tuple[set[str], set[str]]] = {
        name: ({*event.levels}, set(event.fields)) for name, event in PLAIN.items()
    }
    assert told == {
        name: (
            {call.level for call in calls if call.event == name},
            {field for call in calls if call.event == name for field in call.fields},
        )
        for name in PLAIN
    }


def test_names_stand_once_and_each_warning_has_its_reason() -> None:
    assert [name for name, n in Counter(event.name for event in EVENTS).items() if n > 1] == []
    assert {e.name for e in EVENTS if e.no_row_lost} == {
        e.name for e in EVENTS if "warning" in e.levels
    }
    assert {name for name in _LOGGED_ONCE if TABLE[name].level != "warning"} == set()


@pytest.mark.parametrize(
    "call",
    [
        'log.info(f"task.{state}")',
        'log.info("task." + state)',
        "self._log.info(event)",
        "self._log.warning(NAMES[state])",
        'structlog.get_logger().info("task.%s", state)',
        'log.log(level, "task.paused")',
        "tell = self._log.warning if passing else self._log.error",
        'partial(log.info, "task.paused")',
    ],
)
def test_no_name_is_put_together(call: str) -> None:
    with pytest.raises(PutTogetherError):
        list(logged_in(ast.parse(call), "here"))


def test_no_field_has_the_name_of_one_that_every_record_has() -> None:
    reserved = {"timestamp", "level", "event", "task"}
    assert [event.name for event in EVENTS if reserved & event.fields.keys()] == []


def test_cells_do_not_end_their_rows() -> None:
    texts = [text for e in EVENTS for text in (e.meaning, e.no_row_lost, *e.fields.values())]
    texts += [text for w in CHECK_WARNINGS for text in (w.finding, w.no_row_lost)]
    assert [text for text in texts if "|" in text or "\n" in text] == []


def test_the_page_of_the_log_is_that_of_the_table() -> None:
    assert page("reference/logs.md") == log_page(), (
        "run: python -m scripts.events_reference > docs/reference/logs.md"
    )


def test_the_page_of_the_warnings_is_that_of_the_table() -> None:
    assert page("runbook/warnings.md") == warnings_page(), (
        "run: python -m scripts.events_reference warnings > docs/runbook/warnings.md"
    )
