"""The statements that gh-ost and pt-online-schema-change make, one by one, where nobody writes."""

from __future__ import annotations


def gh_ost_steps(table: str, change: str, *, copied: str = "id, v", counter: int = 1) -> list[str]:
    """What gh-ost does to ``table``; ``copied`` are the columns that both structures have."""
    ghost, trash, log = f"_{table}_gho", f"_{table}_del", f"_{table}_ghc"
    return [
        f"DROP TABLE IF EXISTS {ghost}, {trash}, {log}",
        f"CREATE TABLE {log} (id BIGINT AUTO_INCREMENT PRIMARY KEY, hint VARCHAR(64))",
        f"CREATE TABLE {ghost} LIKE {table}",
        f"ALTER /* gh-ost */ TABLE {ghost} {change}",
        f"ALTER /* gh-ost */ TABLE {ghost} AUTO_INCREMENT={counter}",
        f"INSERT INTO {log} VALUES (1, 'state')",
        f"INSERT IGNORE INTO {ghost} ({copied}) SELECT {copied} FROM {table}",
        f"CREATE TABLE {trash} (id INT PRIMARY KEY) COMMENT='ghost-cut-over-sentry'",
        f"DROP TABLE {trash}",
        f"RENAME TABLE {table} TO {trash}, {ghost} TO {table}",
        f"DROP TABLE {log}",
        f"DROP TABLE {trash}",
    ]


def pt_osc_steps(
    table: str, change: str, *, definition: str, copied: str = "id, v", during: str = ""
) -> list[str]:
    """What pt-online-schema-change does to ``table``, whose columns ``definition`` has.

    ``during``: a statement that comes when the triggers are there.
    """
    ghost, trash = f"_{table}_new", f"_{table}_old"
    new = ", ".join(f"NEW.{column.strip()}" for column in copied.split(","))
    return [
        f"CREATE TABLE {ghost} {definition}",
        f"ALTER TABLE {ghost} {change}",
        f"CREATE TRIGGER pt_osc_{table} AFTER INSERT ON {table} FOR EACH ROW"
        f" REPLACE INTO {ghost} ({copied}) VALUES ({new})",
        *([during] if during else ()),
        f"INSERT IGNORE INTO {ghost} ({copied}) SELECT {copied} FROM {table}",
        f"RENAME TABLE {table} TO {trash}, {ghost} TO {table}",
        f"DROP TABLE IF EXISTS {trash}",
    ]
