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
