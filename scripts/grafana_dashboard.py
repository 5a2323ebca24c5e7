"""The board for Grafana, made from a list of panels.

``python -m scripts.grafana_dashboard > config/monitoring/dashboard.json`` writes it anew. The form:
Grafana, "Dashboard JSON model".
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

DATA = {"type": "prometheus", "uid": "${source}"}
WIDTH, HEIGHT = 8, 7
"""Of a panel; a board is 24 wide."""
COLUMNS = 24 // WIDTH


@dataclass(frozen=True, slots=True)
class Panel:
    """One curve, or with ``single`` one figure; ``series`` is by legend."""

    title: str
    unit: str
    series: dict[str, str]
    single: bool = False


def per_second(metric: str, by: str) -> str:
    """The rate of a counter, added up by labels."""
    return f'sum by ({by}) (rate({metric}{{task=~"$task"}}[$__rate_interval]))'


def now(metric: str) -> str:
    """A gauge."""
    return f'{metric}{{task=~"$task"}}'


def quantile(part: float, metric: str) -> str:
    """A quantile of a histogram."""
    inner = per_second(f"{metric}_bucket", "task, le")
    return f"histogram_quantile({part}, {inner})"


PANELS = (
    Panel("Needs the operator", "short", {"{{task}}": now("replicator_needs_operator")}, True),
    Panel("Faults", "short", {"{{task}} {{event}}": now("replicator_fault_active")}, True),
    Panel(
        "Largest lag",
        "s",
        {"{{task}}": f"max by (task) ({now('replicator_source_lag_seconds')})"},
        True,
    ),
    Panel("Lag by source", "s", {"{{source}}": now("replicator_source_lag_seconds")}),
    Panel(
        "Rows written by target",
        "rowsps",
        {"{{target}}": per_second("replicator_target_rows_total", "target")},
    ),
    Panel(
        "From commit to visible",
        "s",
        {
            "half of all": quantile(0.5, "replicator_commit_to_visible_seconds"),
            "99 %": quantile(0.99, "replicator_commit_to_visible_seconds"),
        },
    ),
    Panel(
        "Read by source",
        "Bps",
        {"{{source}}": per_second("replicator_source_bytes_total", "source")},
    ),
    Panel(
        "Transactions by source",
        "ops",
        {"{{source}}": per_second("replicator_source_transactions_total", "source")},
    ),
    Panel(
        "Time of a batch",
        "s",
        {
            "half of all": quantile(0.5, "replicator_batch_seconds"),
            "99 %": quantile(0.99, "replicator_batch_seconds"),
        },
    ),
    Panel("Read and not applied", "bytes", {"{{task}}": now("replicator_queued_bytes")}),
    Panel("Age of the checkpoint", "s", {"{{task}}": now("replicator_checkpoint_age_seconds")}),
    Panel(
        "Behind the end of the binlog",
        "bytes",
        {"{{source}}": now("replicator_source_binlog_behind_bytes")},
    ),
    Panel(
        "Binlog files before the purge",
        "short",
        {"{{source}}": now("replicator_source_binlog_files_before_purge")},
    ),
    Panel("Age of locks", "s", {"{{lock}}": now("replicator_lock_age_seconds")}),
    Panel(
        "Row events that are held",
        "short",
        {
            "lock {{lock}}": now("replicator_lock_held_events"),
            "blocked {{target}} {{source}}": now("replicator_blocked_held_events"),
        },
    ),
    Panel("Blocked parts", "s", {"{{kind}} {{name}} {{event}}": now("replicator_blocked_seconds")}),
    Panel(
        "Rows of the full copy",
        "short",
        {
            "{{task}} copied": now("replicator_copy_rows"),
            "{{task}} expected": now("replicator_copy_expected_rows"),
        },
    ),
    Panel(
        "Restarts and faults",
        "short",
        {
            "{{task}} restarts": f"increase({now('replicator_restarts_total')}[$__rate_interval])",
            "{{task}} {{event}}": f"increase({now('replicator_faults_total')}[$__rate_interval])",
        },
    ),
    Panel(
        "Rows that were missing",
        "rowsps",
        {"{{target}}": per_second("replicator_target_missing_rows_total", "target")},
    ),
    Panel("Memory", "bytes", {"{{task}} {{process}}": now("replicator_memory_bytes")}),
)
"""In the order in which somebody looks: what needs them, how it is going, what is in the way."""


def dashboard() -> dict[str, Any]:
    """The board."""
    return {
        "uid": "replicator",
        "title": "replicator",
        "tags": ["replicator"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [_data_source(), _tasks()]},
        "panels": [_panel(place, panel) for place, panel in enumerate(PANELS)],
    }


def _data_source() -> dict[str, Any]:
    return {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _tasks() -> dict[str, Any]:
    return {
        "name": "task",
        "label": "Task",
        "type": "query",
        "datasource": DATA,
        "query": "label_values(replicator_state, task)",
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "current": {"text": "All", "value": "$__all"},
    }


def _panel(place: int, panel: Panel) -> dict[str, Any]:
    row, column = divmod(place, COLUMNS)
    at = {"x": column * WIDTH, "y": row * HEIGHT, "w": WIDTH, "h": HEIGHT}
    targets = [
        {"refId": chr(ord("A") + n), "datasource": DATA, "expr": expr, "legendFormat": legend}
        for n, (legend, expr) in enumerate(panel.series.items())
    ]
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    made = {
        "id": place + 1,
        "type": "stat" if panel.single else "timeseries",
        "title": panel.title,
        "datasource": DATA,
        "gridPos": at,
        "targets": targets,
        "fieldConfig": {"defaults": defaults, "overrides": []},
    }
    if panel.single and panel.unit == "short":
        steps = [{"color": "green", "value": None}, {"color": "red", "value": 1}]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
        defaults["noValue"] = "0"
        made["options"] = {"colorMode": "background", "reduceOptions": {"calcs": ["lastNotNull"]}}
    return made


def dashboard_json() -> str:
    """The text of config/monitoring/dashboard.json."""
    return json.dumps(dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(dashboard_json())
