"""An ALTER TABLE of several actions as a sequence of ALTER TABLEs with one action each.

MySQL and MariaDB execute all actions of an ALTER at once. TiDB refuses actions that depend on one
another or change the same column or index ("multi-schema change": TiDB's manual, "ALTER TABLE" and
"MySQL Compatibility"). The sequence has the same effect if no action names a column that a later
action removes: within one statement, such a name means the column that exists at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replicator.ddl.analysis.column_defaults import replaced_default
from replicator.ddl.parser.alter_actions import alter_actions, split_at_commas
from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.ddl.parser.tokens import Token, tokenise
from replicator.mysql.names import folded

Action = tuple[Token, ...]

_ASSERTIONS = frozenset({"ALGORITHM", "LOCK"})
"""Clauses about how the server makes the changes."""

_KEYS = frozenset(
    {"INDEX", "KEY", "UNIQUE", "FULLTEXT", "SPATIAL", "PRIMARY", "CONSTRAINT", "FOREIGN", "CHECK"}
)
_DEFINING = frozenset({"ADD", "MODIFY", "CHANGE"})
_CHARSETS = frozenset({"CHARSET", "CHARACTER", "COLLATE", "CONVERT"})
_NOISE = frozenset({"COLUMN", "IF", "NOT", "EXISTS", "TO"})


def single_changes(statement: ParsedStatement) -> tuple[str, ...]:
    """Return statements with one action each that together have the effect of this one.

    As in a single statement, keys are dropped first and added after all columns. Returns nothing if
    there is only one action, or if it is uncertain that the effect is the same.
    """
    if statement.kind is not StatementKind.ALTER_TABLE or statement.renames:
        return ()
    if statement.named(TableRole.EXCHANGED):
        return ()
    proper = [
        token
        for token in statement.tokens
        if not any(span.start <= token.start < span.end for span in statement.omitted)
    ]
    subject = statement.named(TableRole.SUBJECT)[0]
    kept = {token.start for token in proper}
    found: list[Action] = []
    for action in alter_actions(statement):
        if whole := tuple(token for token in action if token.start in kept):
            found += _parts(whole)
    actions = sorted((a for a in found if a[0].keyword not in _ASSERTIONS), key=_turn)
    if len(actions) < 2 or not _independent(actions):
        return ()
    head = _written([token for token in proper if token.start < subject.span.end])
    return tuple(f"{head} {_written(action)}" for action in actions)


def change_and_rename(statement: ParsedStatement) -> tuple[str, ...]:
    """Split an ALTER TABLE that also renames its table into two: the change, and the rename.

    Returns nothing for other statements.
    """
    if statement.kind is not StatementKind.ALTER_TABLE or not statement.renames:
        return ()
    subject, new = statement.named(TableRole.SUBJECT)[0], statement.named(TableRole.NEW_NAME)[0]
    actions = alter_actions(statement)
    renaming = [a for a in actions if a[0].start < new.span.start < a[-1].end]
    changes = [action for action in actions if action not in renaming]
    # Text after the new name without a comma is another action.
    if len(renaming) != 1 or not changes or renaming[0][-1].end != new.span.end:
        return ()
    head = _written([token for token in statement.tokens if token.start < subject.span.end])
    return (
        f"{head} {', '.join(map(_written, changes))}",
        f"{head} {_written(renaming[0])}",
    )


def renewed_columns(statement: ParsedStatement) -> frozenset[str]:
    """Return the folded names of the columns that an ALTER drops and adds again.

    In one statement, indexes of such a column then refer to the new column; in separate statements,
    they are dropped with the old one (MySQL, ``mysql_prepare_alter_table`` in
    ``sql/sql_table.cc``).
    """
    dropped: set[str] = set()
    added: set[str] = set()
    for action in alter_actions(statement):
        for part in _parts(tuple(action)):
            if _about_keys(part):
                continue
            named = next((t for t in part[1:] if t.is_name and t.keyword not in _NOISE), None)
            if named is not None and part[0].keyword in ("DROP", "ADD"):
                (dropped if part[0].keyword == "DROP" else added).add(folded(named.name))
    return frozenset(dropped & added)


def dropped_keys(statement: ParsedStatement) -> frozenset[str]:
    """Return the folded names of the keys that an ALTER drops by name."""
    found = set()
    for action in alter_actions(statement):
        if action[0].keyword == "DROP" and _about_keys(tuple(action)):
            names = [t for t in action[2:] if t.is_name and t.keyword not in _NOISE]
            found |= {folded(token.name) for token in names[:1]}
    return frozenset(found)


def _parts(action: Action) -> Iterator[Action]:
    """Yield the actions that are written as one: in brackets, or with PARTITION BY at the end."""
    for place in range(1, len(action) - 1):
        pair = (action[place].keyword, action[place + 1].keyword)
        if pair in (("PARTITION", "BY"), ("REMOVE", "PARTITIONING")) and _depth(action, place) == 0:
            yield from _parts(action[:place])
            yield action[place:]
            return
    opening = next((i for i, t in enumerate(action) if t.keyword not in {"ADD", *_NOISE}), None)
    if action[0].keyword != "ADD" or opening is None or action[opening].text != "(":
        yield from _without_refused_default(action, opening)
        return
    for piece in split_at_commas(action[opening + 1 : -1]):
        bare = action[:1] if piece[0].keyword in _KEYS else action[:opening]
        yield from _without_refused_default(bare + piece, len(bare))


def _without_refused_default(action: Action, name: int | None) -> Iterator[Action]:
    """Yield an ADD COLUMN, and separately its default if servers accept it only in SET DEFAULT."""
    found = None
    if action[0].keyword == "ADD" and name is not None and not _about_keys(action):
        found = replaced_default(action[name + 1 :])
    if name is None or found is None:
        yield action
        return
    definition, default = found
    yield (*action[: name + 1], *definition)
    yield tuple(tokenise(f"ALTER {action[name].text} SET DEFAULT {default}"))


def _depth(action: Action, place: int) -> int:
    texts = [token.text for token in action[:place]]
    return texts.count("(") - texts.count(")")


def _about_keys(action: Action) -> bool:
    return len(action) > 1 and action[1].keyword in _KEYS


def _turn(action: Action) -> int:
    """Return the sort key of an action; actions with equal keys keep the order of the text."""
    word = action[0].keyword
    if word == "DROP" and _about_keys(action):
        return 0
    if word == "ADD" and _about_keys(action):
        return 2
    return 3 if word in ("PARTITION", "REMOVE") else 1


def _independent(actions: Sequence[Action]) -> bool:
    """Whether no action depends on a later one.

    That is, no action names a column that a later one removes or renames, and no action defines a
    column if another one changes the default charset.
    """
    named: set[str] = set()
    defines = defaults = False
    for action in actions:
        if _about_keys(action):
            continue
        if _taken(action) & named:
            return False
        named |= {folded(token.name) for token in action[1:] if token.is_name}
        defining = action[0].keyword in _DEFINING
        defines = defines or defining
        defaults = defaults or (
            not defining and any(token.keyword in _CHARSETS for token in action)
        )
    return not (defines and defaults)


def _taken(action: Action) -> set[str]:
    """Return the column name that is free after an action."""
    names = [token for token in action[1:] if token.is_name and token.keyword not in _NOISE]
    match action[0].keyword:
        case "DROP" if names:
            return {folded(names[0].name)}
        case "CHANGE" | "RENAME" if len(names) > 1:
            old, new = (folded(token.name) for token in names[:2])
            return set() if old == new else {old}
    return set()


def _written(tokens: Sequence[Token]) -> str:
    text, end = "", tokens[0].start
    for token in tokens:
        text += token.text if token.start == end else f" {token.text}"
        end = token.end
    return text
