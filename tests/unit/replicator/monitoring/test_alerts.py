"""The alert rules and the board know only metrics that exist, and miss nothing that needs somebody.

`promtool` tries the rules out, where it is: on the PATH, or as `make promtool` has built it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from actors.errors.faults import FatalError
from replicator.events.all_events import FAULT_EVENTS
from replicator.monitoring.metrics import STATUS_METRICS
from scripts.build_promtool import built_promtool
from scripts.grafana_dashboard import PANELS, dashboard_json
from scripts.metrics_reference import metric_names
from tests.support.tasks.fault_alerts import check_alert
from tests.support.tasks.remedies import executed

ROOT = Path(__file__).parents[4]
ALERTS = ROOT / "config" / "monitoring" / "alerts.yml"
DASHBOARD = ROOT / "config" / "monitoring" / "dashboard.json"
NAME = re.compile(r"\breplicator_[a-z_]+\b")


def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
def test_an_alert_is_about_metrics_that_exist_and_leads_to_a_section(rule: dict[str, Any]) -> None:
    assert set(NAME.findall(rule["expr"])) <= metric_names()
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert {"summary", "description", "runbook"} == set(rule["annotations"])
    path, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert (ROOT / "docs" / path).is_file()
    if anchor and "{{" not in anchor:
        assert anchor in anchors(ROOT / "docs" / path)
    labels = {label for metric in STATUS_METRICS for label in metric.labels}
    used = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
    assert used <= labels | {"task", "instance"}


def test_every_fault_leads_to_its_own_section() -> None:
    [rule] = [rule for rule in rules() if rule["alert"] == "ReplicatorFault"]
    page, _, template = rule["annotations"]["runbook"].partition("#")
    [pattern] = re.findall(r'reReplaceAll "([^"]+)" "" \$labels.event', template)
    sections = anchors(ROOT / "docs" / page)
    for event in FAULT_EVENTS:
        assert re.sub(pattern, "", event.name) in sections


def test_every_fault_raises_its_metric_and_its_alert() -> None:
    """As a task tells of it; the tests with the mark `remedy` do this with faults that they make
    on real servers."""
    for event in FAULT_EVENTS:
        check_alert(FatalError(event.name, "no", "mend it", where="a"))


def test_every_fault_is_made_by_a_test_of_its_remedies() -> None:
    assert {event.name for event in FAULT_EVENTS} == executed(ROOT / "tests").keys()


def test_there_is_an_alert_for_all_that_needs_the_operator() -> None:
    told = " ".join(rule["expr"] for rule in rules())
    for metric in (
        *("replicator_needs_operator", "replicator_fault_active", 'replicator_locks{state="confl'),
        *("replicator_source_binlog_files_before_purge", "up{"),
    ):
        assert metric in told


def test_the_board_is_made_by_its_program_of_metrics_that_exist() -> None:
    assert DASHBOARD.read_text(encoding="utf-8") == dashboard_json()
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    assert len({panel["title"] for panel in board["panels"]}) == len(PANELS)
    expressions = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    named = {name for expression in expressions for name in NAME.findall(expression)}
    assert named - metric_names() == set()


def promtool(*arguments: str, folder: Path) -> str:
    program = shutil.which("promtool") or built_promtool()
    if program is None:
        pytest.skip("there is no promtool: `make promtool` builds it with Go")
    done = subprocess.run(
        [program, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_are_what_prometheus_takes(tmp_path: Path) -> None:
    assert "SUCCESS" in promtool("check", "rules", str(ALERTS), folder=tmp_path)


def test_each_rule_fires_and_each_fault_with_its_section(tmp_path: Path) -> None:
    """Each with a series that makes it fire, as Prometheus' own tests of rules have it."""
    active = 'replicator_fault_active{{task="o",event="{}"}}'
    cases = [_case("ReplicatorFault", active.format(e.name), "1x60") for e in FAULT_EVENTS]
    for case, event in zip(cases, FAULT_EVENTS, strict=True):
        [expected] = case["alert_rule_test"][0]["exp_alerts"]
        anchor = event.name.replace(".", "")
        assert expected["exp_annotations"]["runbook"] == f"runbook/faults.md#{anchor}"
    for alert, series in FIRING.items():
        name, _, values = series.partition(" ")
        cases.append(_case(alert, name, values))
    assert {rule["alert"] for rule in rules()} == {"ReplicatorFault", *FIRING}
    tests = {"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": cases}
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(tests))
    assert "SUCCESS" in promtool("test", "rules", "tests.yml", folder=tmp_path)


FIRING = {
    "ReplicatorLockConflict": 'replicator_locks{task="o",state="conflict"} 1x60',
    "ReplicatorNeedsOperator": 'replicator_needs_operator{task="o"} 1x60',
    "ReplicatorDown": 'up{job="replicator",instance="h:1"} 0x60',
    "ReplicatorPurgeNear": (
        'replicator_source_binlog_files_before_purge{task="o",source="a"} 1x60'
    ),
    "ReplicatorRelayFailed": 'replicator_source_relay_failed{task="o",source="a"} 1x60',
    "ReplicatorLag": 'replicator_source_lag_seconds{task="o",source="a"} 3600x60',
    "ReplicatorLockOpen": 'replicator_lock_age_seconds{task="o",lock="d.t:1",target="d.t"} 7200x60',
    "ReplicatorCheckpointOld": 'replicator_checkpoint_age_seconds{task="o"} 1800x60',
    "ReplicatorSourceAway": 'replicator_source_reading{task="o",source="a"} 0x60',
    "ReplicatorWriterRetrying": 'replicator_writer_retrying{task="o"} 1x60',
    "ReplicatorRestarts": 'replicator_restarts_total{task="o"} 0+1x60',
    "ReplicatorRowsMissing": 'replicator_target_missing_rows_total{task="o",target="d.t"} 0+1x60',
    "ReplicatorRowsDiffer": 'replicator_validation_error_rows{task="o"} 1x60',
    "ReplicatorTargetDiffers": 'replicator_target_differing_rows{task="o",target="d.t"} 2x60',
    "ReplicatorNotVerified": (
        'replicator_target_verified_timestamp_seconds{task="o",target="d.t"} -345600x60'
    ),
    "ReplicatorCopyStalled": 'replicator_copy_rows{task="o"} 500x60',
}
"""A series that makes each fire within an hour, beside those of `BESIDE`."""

BESIDE = {
    'replicator_source_binlog_files_behind{task="o",source="a"}': "1x60",
    'replicator_state{task="o",state="running"}': "1x60",
    'replicator_copy_active{task="o"}': "1x60",
}
"""What the others need; it makes none fire by itself."""


def _case(alert: str, series: str, values: str) -> dict[str, Any]:
    """A test of promtool: the alert fires with the labels of the series."""
    [rule] = [rule for rule in rules() if rule["alert"] == alert]
    labels = dict(re.findall(r'(\w+)="([^"]*)"', series))
    beside = dict(BESIDE)
    if alert == "ReplicatorSourceAway":
        beside['replicator_needs_operator{task="o"}'] = "0x60"
    own = {"series": series, "values": values}
    others = [{"series": name, "values": text} for name, text in beside.items()]
    told, value = rule["annotations"].items(), SHOWN.get(alert, "")
    shown = {name: _filled(text, labels, value) for name, text in told}
    expected = {"exp_labels": {**labels, **rule["labels"]}, "exp_annotations": shown}
    looked = {"eval_time": "60m", "alertname": alert, "exp_alerts": [expected]}
    return {"interval": "1m", "input_series": [own, *others], "alert_rule_test": [looked]}


SHOWN = {
    "ReplicatorLag": "1h 0m 0s",
    "ReplicatorLockOpen": "2h 0m 0s",
    "ReplicatorCheckpointOld": "30m 0s",
}
"""What the text of an alert says for its value."""


def _filled(text: str, labels: dict[str, str], value: str) -> str:
    text = text.replace("{{ $value | humanizeDuration }}", value)
    text = text.replace(
        '{{ reReplaceAll "[^a-z0-9_-]" "" $labels.event }}',
        re.sub("[^a-z0-9_-]", "", labels.get("event", "")),
    )
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: labels[found[1]], text)
