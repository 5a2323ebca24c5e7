"""The outcome of a comparison as a page of HTML: one file that needs no network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from html import escape

from replicator.pipeline.compare.findings import ComparedRange, RowExample, TargetComparison
from replicator.printable_text import printable_text
from replicator.terminal.comparison import remarks, verdict

CELLS = 400
"""Cells of a strip at most: where there are more ranges, several share one."""

_STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --dim: #59636e; --paper: #ffffff;
  --card: #f6f8fa; --line: #d1d9e0; --equal: #2da44e; --differs: #cf222e; --held: #9a6700;
  --unsettled: #6e7781; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --dim: #9198a1; --paper: #0d1117; --card: #161b22; --line: #3d444d;
    --equal: #3fb950; --differs: #f85149; --held: #d29922; --unsettled: #8b949e; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--text); background: var(--paper);
  margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.1rem; margin: 0; }
p { margin: .3rem 0; color: var(--dim); }
section { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 1rem 1.2rem; margin: 1rem 0; }
header { display: flex; gap: .8rem; align-items: center; flex-wrap: wrap; }
.verdict { border-radius: 99px; padding: 0 .7rem; color: #fff; font-size: .85rem; }
.strip { display: flex; height: 22px; margin: .8rem 0; border-radius: 4px; overflow: hidden;
  gap: 1px; }
.strip i { flex: 1 1 0; min-width: 1px; }
.equal { background: var(--equal); } .differs { background: var(--differs); }
.held { background: var(--held); } .unsettled, .incomplete { background: var(--unsettled); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th { color: var(--dim); font-weight: 500; white-space: nowrap; }
.n { text-align: right; } code { font: 13px/1.4 ui-monospace, monospace; word-break: break-word; }
ul { margin: .4rem 0; padding-left: 1.2rem; }
details { margin-top: .8rem; } summary { cursor: pointer; color: var(--dim); }
.legend span { display: inline-block; width: .7rem; height: .7rem; border-radius: 2px;
  margin: 0 .3rem 0 .9rem; }
"""


def comparison_page(task: str, results: Sequence[TargetComparison], made_at: datetime) -> str:
    """The page. Names and values of servers are text in it, whatever they hold."""
    sections = "\n".join(_section(result) for result in results)
    legend = "".join(
        f'<span class="{name}"></span>{name}' for name in ("equal", "differs", "held", "unsettled")
    )
    title = f"Comparison of {_text(task)}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{title}</h1>
<p>{made_at:%Y-%m-%d %H:%M} UTC. Each strip is a target in the order of its key, a cell a range of
rows: <small class="legend">{legend}</small></p>
{sections}
</body>
</html>
"""


def _section(result: TargetComparison) -> str:
    word = verdict(result)
    seconds = f"{result.seconds:,.1f} s, {result.rows_per_second:,.0f} rows/s"
    notes = "".join(f"<li>{_text(text)}</li>" for text in remarks(result))
    return f"""<section>
<header><h2>{_text(str(result.target))}</h2><b class="verdict {word}">{word}</b>
<span>{result.rows:,} rows, shards: {len(result.by_shard):,}, ranges: {len(result.ranges):,}</span>
<span>{seconds}</span></header>
{_strip(result.ranges)}
{_counts(result)}
{f"<ul>{notes}</ul>" if notes else ""}
{_rows(result)}
{_shards(result)}
</section>"""


def _strip(ranges: Sequence[ComparedRange]) -> str:
    if not ranges:
        return ""
    size = -(-len(ranges) // CELLS)
    cells = "".join(_cell(ranges, at, at + size) for at in range(0, len(ranges), size))
    return f'<div class="strip">{cells}</div>'


def _cell(ranges: Sequence[ComparedRange], start: int, end: int) -> str:
    some = ranges[start:end]
    differing, held = sum(r.differing for r in some), sum(r.held for r in some)
    unsettled = sum(r.unsettled for r in some)
    kinds = (("differs", differing), ("unsettled", unsettled), ("held", held))
    name = next((kind for kind, count in kinds if count), "equal")
    number = f"range {start + 1}" if len(some) == 1 else f"ranges {start + 1} to {end}"
    more = "".join(f", {count:,} {kind}" for kind, count in kinds if count)
    return f'<i class="{name}" title="{number}: {sum(r.rows for r in some):,} rows{more}"></i>'


def _counts(result: TargetComparison) -> str:
    names = ("missing", "extra", "different", "held", "unsettled")
    heads = "".join(f'<th class="n">{name}</th>' for name in names)
    cells = "".join(f'<td class="n">{getattr(result, name):,}</td>' for name in names)
    return f"<table><tr>{heads}</tr><tr>{cells}</tr></table>"


def _rows(result: TargetComparison) -> str:
    if not result.examples:
        return ""
    rows = "".join(_row(example) for example in result.examples)
    shown = f"{len(result.examples):,} of {result.differing:,} rows that differ"
    names = ("", "key", "shard", "column", "in the shard", "on the target")
    head = "".join(f"<th>{name}</th>" for name in names)
    table = f'<div class="scroll"><table><tr>{head}</tr>{rows}</table></div>'
    return f"<details open><summary>{shown}</summary>{table}</details>"


def _row(example: RowExample) -> str:
    cells = (("", "", ""),) if not example.columns else tuple(_columns(example))
    first = f"<td>{example.kind}</td><td>{_code(example.key)}</td><td>{_text(example.shard)}</td>"
    head, *more = (f"<td>{a}</td><td>{b}</td><td>{c}</td>" for a, b, c in cells)
    rest = "".join(f"<tr><td></td><td></td><td></td>{cells_of}</tr>" for cells_of in more)
    return f"<tr>{first}{head}</tr>{rest}"


def _columns(example: RowExample) -> Iterator[tuple[str, str, str]]:
    for column in example.columns:
        yield _text(column.column), _code(column.in_shard), _code(column.on_target)


def _shards(result: TargetComparison) -> str:
    lines = _lines((name, f"{rows:,}") for name, rows in sorted(result.by_shard.items()))
    if not lines:
        return ""
    head = '<tr><th>shard</th><th class="n">rows</th></tr>'
    return f"<details><summary>rows of each shard</summary><table>{head}{lines}</table></details>"


def _lines(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f'<tr><td>{_text(a)}</td><td class="n">{b}</td></tr>' for a, b in pairs)


def _code(value: str) -> str:
    return f"<code>{_text(value)}</code>" if value else ""


def _text(value: str) -> str:
    return escape(printable_text(value))
