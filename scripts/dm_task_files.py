"""How DM's own task files load: ``python -m scripts.dm_task_files FOLDER``.

FOLDER is a checkout of DM's public repository (github.com/pingcap/tiflow), or a part of it; nothing
of it is kept here. Each task file below it is loaded as it is, with its source files added: those
with its source ids beside it, else those anywhere below FOLDER, else one that is made up. Marks
that DM's test scripts replace get a value of their kind.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import yaml

from config import TaskFileError, load_task

_MADE_UP = "source-id: '{}'\nfrom: {{host: 127.0.0.1, port: 3306, user: root}}\n"
_MARKS = (
    (re.compile(r"binlog-name-placeholder-\d"), "mysql-bin.000001"),
    (re.compile(r"binlog-pos-placeholder-\d"), "4"),
    (re.compile(r"binlog-gtid-placeholder-\d"), "3ccc475b-2343-11e7-be21-6c0b84d59f30:1-14"),
    (re.compile(r"task-mode-placeholder"), "incremental"),
)
_KEY = re.compile(r": ((?:sources|[a-z][a-z_-]*)[^ :]*): ")


class Verdict(Enum):
    """What became of a task file."""

    LOADS = "loads"
    WARNS = "loads with warnings"
    FAILS = "does not load"


@dataclass(frozen=True, slots=True)
class Finding:
    """One task file. ``notes``: keys that are warned about, or the reasons why it does not load."""

    path: Path
    verdict: Verdict
    notes: tuple[str, ...]
    made_up: bool
    """Whether a source had to be made up."""


def classify_all(folder: Path) -> list[Finding]:
    """Load every task file below a folder, in the order of their paths."""
    texts = {path: _yaml(path) for path in sorted(folder.rglob("*.y*ml"))}
    known: dict[str, list[Path]] = {}
    for path, data in texts.items():
        if isinstance(data, dict) and "source-id" in data and "from" in data:
            known.setdefault(str(data["source-id"]), []).append(path)
    return [
        _classify(path, data, known)
        for path, data in texts.items()
        if isinstance(data, dict) and "mysql-instances" in data
    ]


def report(findings: Sequence[Finding], folder: Path) -> Iterator[str]:
    """The findings in lines: the counts, the keys that are warned about, what does not load."""
    counts = Counter(finding.verdict for finding in findings)
    loading = counts[Verdict.LOADS] + counts[Verdict.WARNS]
    yield f"{len(findings)} task files, {loading} of these load"
    yield from (f"  {counts[verdict]:4} {verdict.value}" for verdict in Verdict)
    yield f"  {sum(f.made_up for f in findings):4} with a source that is made up"
    warned = Counter(key for f in findings if f.verdict is Verdict.WARNS for key in set(f.notes))
    yield "keys that are warned about, in so many files:"
    yield from (f"  {count:4} {key}" for key, count in warned.most_common())
    yield f"{Verdict.FAILS.value}:"
    for finding in findings:
        if finding.verdict is Verdict.FAILS:
            yield f"  {finding.path.relative_to(folder)}"
            yield from (f"      {note}" for note in finding.notes)


def _yaml(path: Path) -> object:
    try:
        return yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return None  # templates of other tools


def _classify(path: Path, data: Mapping[str, object], known: Mapping[str, list[Path]]) -> Finding:
    with tempfile.TemporaryDirectory() as name:
        sources = list(_source_files(path, data, known, Path(name)))
        task = Path(name, "task.yaml")
        text = path.read_text(encoding="utf-8")
        for mark, value in _MARKS:
            text = mark.sub(value, text)
        # At the end: a file may begin with a mark of its own.
        task.write_text(f"{text}\nsource-files: {[str(source) for source in sources]}\n")
        made_up = any(source.parent == task.parent for source in sources)
        try:
            warnings = load_task(task).warnings
        except TaskFileError as error:
            reasons = tuple(f"{problem.key}: {problem.message}" for problem in error.problems)
            return Finding(path, Verdict.FAILS, reasons, made_up)
    verdict = Verdict.WARNS if warnings else Verdict.LOADS
    return Finding(path, verdict, tuple(map(_warned_key, warnings)), made_up)


def _source_files(
    path: Path, data: Mapping[str, object], known: Mapping[str, list[Path]], folder: Path
) -> Iterator[Path]:
    instances = data["mysql-instances"]
    for number, instance in enumerate(instances if isinstance(instances, list) else ()):
        source_id = str(instance.get("source-id", "")) if isinstance(instance, dict) else ""
        found = known.get(source_id, [])
        beside = [source for source in found if source.parent == path.parent]
        if found:
            # The plainest name of several: the others are variants for a single test.
            yield min(beside or found, key=lambda p: (len(p.name), p)).resolve()
        elif source_id:
            made = folder / f"source{number}.yaml"
            made.write_text(_MADE_UP.format(source_id))
            yield made


def _warned_key(warning: str) -> str:
    """The key of a warning without names and indexes: ``syncers.*.batch``."""
    match = _KEY.search(warning)
    key = match[1] if match else warning
    key = re.sub(r"\[\d+\]", ".*", key)
    return re.sub(r"^(\w+s)\.(?!\*)[^.]+", r"\1.*", key)


def main() -> None:
    """Write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    sys.stdout.write("\n".join(report(classify_all(folder), folder)) + "\n")


if __name__ == "__main__":
    main()
