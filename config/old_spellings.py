"""Old spellings of DM's keys, brought to the present ones before anything is checked."""

from __future__ import annotations

from config.paths import select
from config.yaml_lines import Document

RENAMED: tuple[tuple[str, str, str], ...] = (
    ("", "black-white-list", "block-allow-list"),
    ("mysql-instances.*", "black-white-list", "block-allow-list"),
    ("loaders.*", "on-duplicate", "on-duplicate-logical"),
    ("mysql-instances.*.loader", "on-duplicate", "on-duplicate-logical"),
)
"""Section (a pattern), old key and present key."""

NOT_GIVEN: tuple[object, ...] = (None, "", [], {})
"""What stands where nothing is given: DM prints both spellings of a key, one of them empty."""


def replace_old_spellings(document: Document) -> None:
    """Rename old keys in the data; what is said about them still names the key as written."""
    for pattern, old, new in RENAMED:
        for path, section in list(select(document.data, pattern)):
            if not isinstance(section, dict) or old not in section:
                continue
            if section[old] in NOT_GIVEN:
                pass
            elif section.get(new) not in NOT_GIVEN:
                message = f"is the old spelling of `{new}`, which is there too; keep `{new}` alone"
                document.problems.append(document.problem((*path, old), message))
            else:
                section[new] = section[old]
                document.copy_places((*path, old), (*path, new))
            del section[old]
    _replace_is_sharding(document)


def _replace_is_sharding(document: Document) -> None:
    """DM: ``is-sharding: true`` is pessimistic where ``shard-mode`` says nothing."""
    data = document.data
    if isinstance(data, dict) and data.get("is-sharding") is True and not data.get("shard-mode"):
        data["shard-mode"] = "pessimistic"
        document.copy_places(("is-sharding",), ("shard-mode",))
