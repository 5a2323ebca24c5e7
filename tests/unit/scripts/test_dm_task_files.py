"""DM's own task files: how they are found and classified."""

from __future__ import annotations

from pathlib import Path

from scripts.dm_task_files import Verdict, classify_all, report

_ROUTED = """\
---
name: one
task-mode: placed
target-database: {host: t, port: 4000, user: root}
mysql-instances:
  - source-id: in-folder
    route-rules: [r]
  - {source-id: elsewhere, mydumper-thread: 3, route-rules: [r]}
  - {source-id: nowhere, route-rules: [r]}
routes: {r: {schema-pattern: s_*, target-schema: s}}
"""


def test_a_checkout_of_dm_is_classified(tmp_path: Path) -> None:
    case, other = tmp_path / "case", tmp_path / "other"
    case.mkdir()
    other.mkdir()
    source = "source-id: {}\nenable-relay: true\nfrom: {{host: h, port: 1, user: u}}\n"
    (case / "source1.yaml").write_text(source.format("in-folder"))
    (case / "source1-encrypted.yaml").write_text("source-id: in-folder\nfrom: {}\n")
    (other / "source2.yaml").write_text(source.format("elsewhere"))
    (other / "source1.yaml").write_text("source-id: in-folder\nfrom: {}\n")
    (other / "template.yaml").write_text("{{ a template }}: [")
    for name, mode in (
        ("a-plain", "incremental"),
        ("b-unknown", "all\nnonsense: 1"),
        ("c-optimistic", "all\nshard-mode: optimistic"),
        ("d-mark", "task-mode-placeholder"),
    ):
        (case / f"{name}.yaml").write_text(_ROUTED.replace("placed", mode))
    first, second, third, fourth = classify_all(tmp_path)
    for found in (first, fourth):
        assert (found.verdict, found.made_up) == (Verdict.WARNS, True)
        assert set(found.notes) == {"enable-relay", "mysql-instances.*.mydumper-thread"}
    assert (second.verdict, second.notes) == (Verdict.FAILS, ("nonsense: unknown key",))
    assert third.verdict is Verdict.WARNS
    lines = list(report([first, second, third], tmp_path))
    assert lines[0] == "3 task files, 2 of these load"
    assert lines[-2:] == ["  case/b-unknown.yaml", "      nonsense: unknown key"]
