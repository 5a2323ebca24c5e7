"""Links between the pages lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


def links(page: Path) -> Iterator[str]:
    """The targets of links that are not addresses of the web."""
    for target in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            yield target


def anchors(page: Path) -> set[str]:
    """The anchors that headings get: lower case, signs left out, dashes for spaces."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        # A picture for one of the two colour schemes.
        path, _, anchor = re.sub("#only-(?:light|dark)$", "", link).partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{link} leads to no file"
        assert not anchor or anchor in anchors(target), f"{link} leads to no heading"


def test_the_readme_leads_to_the_first_page_and_to_what_is_beside_the_pages() -> None:
    linked = {link.partition("#")[0] for link in links(ROOT / "README.md")}
    assert {"docs/index.md", "CONTRIBUTING.md", "CHANGELOG.md"} <= linked
