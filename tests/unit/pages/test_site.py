"""The site that `make docs` builds: strict, offline, and whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
WRITTEN = [page for page in ROOT.glob("docs/**/*.md") if page.parent.name != "reference"]
WIDEST = 97
"""Characters of a line in a block that a wide screen shows whole (docs/assets/extra.css)."""


def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(
    tmp_path: Path,
) -> None:
    """Strict: a broken link or anchor, or a page that no menu shows, ends the build."""
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    pages = {page: page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html")}
    assert len(pages) > len(list(ROOT.glob("docs/**/*.md"))) - 1
    loaded = re.compile(
        r"""<(?:link|script|img|iframe)[^>]+(?:href|src)="((?:https?:)?//[^"]+)\""""
    )
    assert [found for text in pages.values() for found in loaded.findall(text)] == []
    styles = "".join(path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.css"))
    styles += "".join(pages.values())
    assert "--md-default-fg-color" in styles
    assert re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^\"')]+", styles) == []
    # The theme's script would fetch these from elsewhere.
    assert [page for page, text in pages.items() if 'class="mermaid"' in text] == []
    assert [page for page, text in pages.items() if "md-source__repository" in text] == []
    # A list that the paragraph above has swallowed keeps its markers.
    swallowed = re.compile(r"^ *(?:\*|\d+\.) \S.*", re.MULTILINE)
    found = {
        page.name: swallowed.findall(re.sub(r"<pre.*?</pre>", "", text, flags=re.DOTALL))
        for page, whole in pages.items()
        for text in re.findall(r"<article.*?</article>", whole, re.DOTALL)
    }
    assert {page: lines for page, lines in found.items() if lines} == {}


def test_no_line_of_a_block_runs_out_of_the_page() -> None:
    assert len(WRITTEN) > 40
    blocks = re.compile(r"^ *```[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
    lines = {
        (str(page.relative_to(ROOT)), line)
        for page in WRITTEN
        for block in blocks.findall(page.read_text(encoding="utf-8"))
        for line in block.splitlines()
    }
    assert sorted((page, line) for page, line in lines if len(line) > WIDEST) == []


def test_what_belongs_to_an_item_of_a_list_is_indented_by_four() -> None:
    """The site ends a list at anything less; GitHub takes both."""
    fences = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
    less = re.compile(r"(?:(?<=\n\n) {1,3}\S.*|^ {1,3}(?:[*-]|\d+\.) .*)", re.MULTILINE)
    # An item right behind a block that an empty line begins becomes a part of the block.
    behind = re.compile(r"\n\n(?: {4}.*\n)+(?:[*-]|\d+\.) .*")
    found = {
        str(page.relative_to(ROOT)): less.findall(text) + behind.findall(text)
        for page in ROOT.glob("docs/**/*.md")
        for text in [fences.sub("", page.read_text(encoding="utf-8"))]
    }
    assert {page: lines for page, lines in found.items() if lines} == {}
