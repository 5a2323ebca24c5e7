"""The foreign keys on which all members agree, as parts of tables that do not affect rows.

The task writes without foreign key checks and makes the changes of ON DELETE and ON UPDATE by
statements, so rows do not depend on the target's foreign keys.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from replicator.ddl.model.table import ForeignKeyDefinition
from replicator.ddl.rewrite.table_sql import foreign_key_sql
from replicator.mysql.names import folded, quote
from replicator.schema.structure.foreign_keys import parent_of
from replicator.schema.structure.structure import Table
from replicator.sharding.optimistic.agreement import Part, PartKind
from replicator.sharding.optimistic.shard_states import ShardState

_THERE = "there"
_GONE = ""
_BY_DEFAULT = ("", "RESTRICT", "NO ACTION")
_MADE = re.compile(r"_ibfk_\d+$", re.IGNORECASE)
"""The end of a name that a server has generated."""
DROPS_KEY = "DROP FOREIGN KEY"


def part_of(key: ForeignKeyDefinition) -> Part:
    """Return the part for a foreign key: its columns and actions.

    Its name and its parent are left out, since they differ from shard to shard.
    """
    words = [", ".join(map(folded, key.columns))]
    for when, action in (("delete", key.on_delete), ("update", key.on_update)):
        words += [] if action in _BY_DEFAULT else [f"on {when} {action.lower()}"]
    return PartKind.FOREIGN_KEY, " ".join(words)


def agreed_keys(
    shard_states: Iterable[ShardState], former: Iterable[Part]
) -> Mapping[Part, str | None]:
    """Return the foreign keys of members, with None for a key that only some of them have.

    Args:
        shard_states: the members.
        former: the parts so far; the foreign keys among them that no member has are gone.
    """
    tables = [shard_state.taken for shard_state in shard_states]
    known = [_keys(table).keys() for table in tables if table is not None]
    if not known or len(known) < len(tables):
        return {}
    found: dict[Part, str | None] = {
        part: _GONE for part in former if part[0] is PartKind.FOREIGN_KEY
    }
    for part in {part for own in known for part in own}:
        found[part] = _THERE if all(part in own for own in known) else None
    return found


def key_actions(
    target: Table,
    parts: Collection[Part],
    wanted: Mapping[Part, str | None],
    members: Sequence[Sequence[ForeignKeyDefinition]],
) -> dict[tuple[Part, ...], str]:
    """Return the actions of an ALTER TABLE that give the target these foreign keys, or drop them.

    Args:
        target: its structure now.
        parts: the parts to change; parts other than foreign keys are ignored.
        wanted: the parts with the values on which members agree.
        members: the foreign keys of each member whose parents are targets, with these parents.
    """
    found: dict[tuple[Part, ...], str] = {}
    there = _keys(target)
    for part in sorted(part for part in parts if part[0] is PartKind.FOREIGN_KEY):
        old = there.get(part)
        dropped = [f"{DROPS_KEY} {quote(old.name)}"] if old is not None else []
        if wanted[part] == _GONE and dropped:
            found[part,] = dropped[0]
        if wanted[part] != _THERE or (key := _key_of_all(part, members)) is None:
            continue
        if old is None or _parent(old, target) != _parent(key, target):
            found[part,] = ", ".join([*dropped, f"ADD {foreign_key_sql(key)}"])
    return found


def _key_of_all(
    part: Part, members: Sequence[Sequence[ForeignKeyDefinition]]
) -> ForeignKeyDefinition | None:
    """Return the foreign key that all members have; None if their parents are different targets."""
    keys = [next((key for key in own if part_of(key) == part), None) for own in members]
    found = [key for key in keys if key is not None]
    forms = {replace(key, name="", index="") for key in found}
    if len(forms) != 1 or len(found) < len(keys):
        return None
    names = {key.name for key in found}
    name = names.pop() if len(names) == 1 else ""
    # Servers also use a name that was given to the key as the name of its index.
    return replace(forms.pop(), name="" if _MADE.search(name) else name)


def _parent(key: ForeignKeyDefinition, target: Table) -> tuple[str, ...]:
    parent = parent_of(key, target.schema)
    return tuple(map(folded, (parent.schema, parent.table, *key.parent_columns)))


def _keys(table: Table) -> Mapping[Part, ForeignKeyDefinition]:
    return {part_of(key): key for key in table.definition.foreign_keys}
