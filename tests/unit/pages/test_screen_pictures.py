"""The pictures of screens on the pages are what their program draws today."""

from __future__ import annotations

from scripts.screen_pictures import FOLDER, THEMES, VIEWS, picture


def test_the_pictures_are_made_by_their_program() -> None:
    for name in VIEWS:
        for theme in THEMES:
            drawn = (FOLDER / f"watch-{name}-{theme}.svg").read_text(encoding="utf-8")
            assert drawn == picture(name, theme), "python -m scripts.screen_pictures draws them"
