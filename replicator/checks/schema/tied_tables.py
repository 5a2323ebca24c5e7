"""Which targets foreign keys tie: whether the target can change rows along as the shards did.

A server that does not log what its foreign keys change can be followed where the target has the
same keys between the same tables: then it makes the changes itself, as long as it gets those of the
parents and children in the order of the shards (`replicator.pipeline.apply.tied_targets`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TypeVar

from replicator.checks.checked_task import SourceToCheck, TaskToCheck
from replicator.checks.schema.agreement import Obstacle, Shard
from replicator.checks.server_versions import parse_version
from replicator.ddl.analysis.foreign_keys import ForeignKey
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.context.session_defaults import NATIVE_FOREIGN_KEYS
from replicator.mysql.names import Member, TableName, folded
from replicator.routing.columns.member_columns import MemberColumns
from replicator.schema.structure.inspection import read_targets

_KEYS_SQL = """
SELECT k.TABLE_SCHEMA, k.TABLE_NAME, k.CONSTRAINT_NAME, k.COLUMN_NAME, k.REFERENCED_TABLE_SCHEMA,
 k.REFERENCED_TABLE_NAME, k.REFERENCED_COLUMN_NAME, r.DELETE_RULE, r.UPDATE_RULE
FROM information_schema.KEY_COLUMN_USAGE k JOIN information_schema.REFERENTIAL_CONSTRAINTS r
 ON r.CONSTRAINT_SCHEMA = k.CONSTRAINT_SCHEMA AND r.CONSTRAINT_NAME = k.CONSTRAINT_NAME
 AND r.TABLE_NAME = k.TABLE_NAME
WHERE k.TABLE_SCHEMA = %s AND r.CONSTRAINT_SCHEMA = %s AND k.REFERENCED_TABLE_NAME IS NOT NULL
ORDER BY k.TABLE_NAME, k.CONSTRAINT_NAME, k.ORDINAL_POSITION
"""
_ACTING_SQL = """
SELECT CONSTRAINT_SCHEMA, TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE DELETE_RULE NOT IN ('RESTRICT', 'NO ACTION') OR UPDATE_RULE NOT IN ('RESTRICT', 'NO ACTION')
"""
_Node = TypeVar("_Node")
_NO_ACTION = ("RESTRICT", "NO ACTION")

_TIDB_ENFORCES = (6, 6, 0)
"""The first TiDB that acts by foreign keys."""


_HELD_APART = Obstacle(
    "shard-mode optimistic holds rows of one table while those of another go on",
    'shard-mode: pessimistic, or "", in the task file',
    in_task_file=True,
)


@dataclass(frozen=True, slots=True)
class KeyedShard:
    """A member with its foreign keys, the parents by the names of their targets: None for one that
    is not replicated. ``rules``: what the task file makes of its columns, ``filtered``: it leaves
    rows out. ``logs``: its server logs what the keys change."""

    member: Member
    keys: tuple[tuple[ForeignKey, TableName | None], ...]
    has_key: bool
    rules: MemberColumns
    filtered: bool
    logs: bool

    def upper(self, column: str) -> int:
        """The bits that mapping adds to a column, by its folded name; 0: none."""
        mapped = self.rules.mapped
        return mapped.upper if mapped is not None and folded(mapped.name) == column else 0

    @property
    def extracted(self) -> dict[str, str]:
        """The value of each extracted column, by its folded name."""
        return {folded(column.name): column.value for column in self.rules.extracted}


@dataclass(slots=True)
class Ties:
    """``referenced``: of each tied target the columns, folded, that keys with an action refer to.

    ``obstacles``: why others can't be tied, though their shards have keys with an action, and what
    to do about it. ``families``: the tied targets, each with those that keys connect it with.
    ``connected``: of each of their shards, a text that is the same for all that keys connect.
    ``keys``: those of the tied targets.
    """

    referenced: dict[TableName, frozenset[str]] = field(default_factory=dict)
    obstacles: dict[TableName, Obstacle] = field(default_factory=dict)
    families: tuple[frozenset[TableName], ...] = ()
    connected: dict[Member, str] = field(default_factory=dict)
    keys: dict[TableName, TargetKeys] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetKeys:
    """A target's foreign keys and its unique keys, as sets of folded columns."""

    foreign: frozenset[ForeignKey]
    unique: tuple[frozenset[str], ...]


def find_ties(
    shards: Mapping[TableName, Sequence[KeyedShard]],
    targets: Mapping[TableName, TargetKeys],
    *,
    holds_rows: bool,
    connects: bool = False,
    complete: bool = True,
) -> Ties:
    """The targets that foreign keys tie, and what keeps others from it.

    ``shards``: all members of each target; ``targets``: of those that are there. ``holds_rows``:
    rows of one table may be held, while those of another go on; ``connects``: not where foreign
    keys connect the two. Such shards then count as one: it must have no two tables of one target,
    and (``complete``) one of each.
    """
    ties = Ties()
    acting = [
        name
        for name, of in shards.items()
        if any(not shard.logs and any(key.acts for key, _ in shard.keys) for shard in of)
    ]
    families = _families(acting, shards)
    family = {name for names in families for name in names}
    members = {shard.member: shard for of in shards.values() for shard in of}
    for name in sorted(family):
        apart = _HELD_APART if holds_rows and not connects else None
        found = apart or _obstacle(name, shards[name], members, targets.get(name))
        if found:
            ties.obstacles[name] = found
    connected = [(names, tables) for names in families for tables in _connected(names, shards)]
    for names, tables in connected if connects else ():
        if found := _uneven(tables, names, complete=complete):
            ties.obstacles.setdefault(min(names), found)
    if ties.obstacles:
        # What is behind an obstacle can't be told from the rest: all or none.
        first = ties.obstacles[min(ties.obstacles)]
        ties.obstacles |= {name: first for name in acting if name not in ties.obstacles}
        return ties
    found_columns: dict[TableName, set[str]] = {name: set() for name in family}
    for name in family:
        for key in targets[name].foreign:
            if key.acts:
                found_columns[key.parent].update(key.parent_columns)
    ties.referenced = {name: frozenset(columns) for name, columns in found_columns.items()}
    ties.families = families
    ties.keys = {name: targets[name] for name in family}
    for _, tables in connected:
        ties.connected |= dict.fromkeys(tables, str(min(tables)))
    return ties


def _joined(pairs: Iterable[tuple[_Node, _Node]]) -> list[frozenset[_Node]]:
    """What these pairs connect."""
    found: dict[_Node, frozenset[_Node]] = {}
    for one, other in pairs:
        joined = found.get(one, frozenset({one})) | found.get(other, frozenset({other}))
        found |= dict.fromkeys(joined, joined)
    return [*dict.fromkeys(found.values())]


def _families(
    acting: Iterable[TableName], shards: Mapping[TableName, Sequence[KeyedShard]]
) -> tuple[frozenset[TableName], ...]:
    """The targets where keys act, each with all that foreign keys of any kind connect it with."""
    alone = ((name, name) for name in shards)
    keys = (
        (name, parent)
        for name, of in shards.items()
        for shard in of
        for _, parent in shard.keys
        if parent is not None and parent in shards
    )
    wanted = set(acting)
    return tuple(names for names in _joined((*alone, *keys)) if names & wanted)


def _connected(
    family: Iterable[TableName], shards: Mapping[TableName, Sequence[KeyedShard]]
) -> list[dict[Member, TableName]]:
    """The shards of a family that foreign keys connect, each with its target."""
    of = {shard.member: name for name in family for shard in shards[name]}
    keyed = [shard for name in family for shard in shards[name]]
    parents = (
        (shard.member, parent)
        for shard in keyed
        for key, _ in shard.keys
        if (parent := Member(shard.member.source, key.parent)) in of
    )
    joined = _joined((*((member, member) for member in of), *parents))
    return [{member: of[member] for member in sorted(members)} for members in joined]


def _uneven(
    tables: Mapping[Member, TableName], family: Iterable[TableName], *, complete: bool
) -> Obstacle | None:
    """What keeps shards that keys connect from taking part in the schema changes of a family."""
    way_out = 'shard-mode: "" in the task file'
    for name in sorted(family):
        having = [member for member, target in tables.items() if target == name]
        if len(having) > 1:
            return Obstacle(
                f"foreign keys connect {having[0]} with {having[1]}: with shard-mode pessimistic,"
                f" connected tables bring their schema changes as one, and only one of them may be"
                f" a shard of {name}",
                way_out,
                in_task_file=True,
            )
        if complete and not having:
            return Obstacle(
                f"foreign keys connect {min(tables)} with no shard of {name}, but others: with"
                " shard-mode pessimistic, connected tables bring their schema changes as one, and"
                f" those of {name} would never come",
                way_out,
                in_task_file=True,
            )
    return None


def _obstacle(
    name: TableName,
    shards: Sequence[KeyedShard],
    members: Mapping[Member, KeyedShard],
    target: TargetKeys | None,
) -> Obstacle | None:
    silent = [shard for shard in shards if not shard.logs]
    for shard in silent:
        if outside := [key for key, parent in shard.keys if parent is None]:
            return Obstacle(
                f"{shard.member} refers to {outside[0].parent}, which is not replicated",
                "let the block-allow-list and the routes take the parent, too",
                in_task_file=True,
            )
        if not shard.has_key:
            return Obstacle(f"{shard.member} has no primary key", "give it a primary key")
        if shard.filtered:
            return Obstacle(
                f"rules of the task file leave out rows of {shard.member}",
                "take the filter out of the task file",
                in_task_file=True,
            )
        if unlike := _mapped_otherwise(shard, members):
            way_out = "map both columns of the key alike in the task file, or neither"
            return Obstacle(unlike, way_out, in_task_file=True)
    wanted = {_routed(shard) for shard in silent}
    if len(wanted) > 1:
        other = next(shard for shard in silent if _routed(shard) != _routed(silent[0]))
        return Obstacle(
            f"{other.member} and {silent[0].member} have other foreign keys",
            "give all shards the same foreign keys",
        )
    if target is None:
        way_out = f"create {name} with the shards' foreign keys"
        return Obstacle(f"{name} does not exist yet", way_out)
    keys = next(iter(wanted), target.foreign)
    alike = [_without_extracted(target.foreign, shard, members) for shard in silent]
    there = next((of for of in alike if of != keys), keys)
    if keys != there:
        lacking, more = keys - there, there - keys
        if lacking:
            key = min(lacking, key=str)
            return Obstacle(
                f"{name} lacks the {key} of its shards",
                f"ALTER TABLE {name.quoted} ADD {key};",
            )
        return Obstacle(
            f"{name} has a foreign key that its shards lack: {min(more, key=str)}",
            "drop it on the target",
        )
    return None


def obstacle_of_new(
    name: TableName,
    shard: KeyedShard,
    parents: Iterable[KeyedShard],
    targets: Mapping[TableName, TargetKeys],
) -> str:
    """What keeps a table that is created later from being a shard of a tied target; empty: nothing.

    ``parents``: the tables that it refers to; ``targets``: the tied ones.
    """
    members = {keyed.member: keyed for keyed in (*parents, shard)}
    if found := _obstacle(name, [shard], members, targets[name]):
        return found.what
    for key in (key for target in targets.values() for key in target.foreign):
        columns = frozenset(key.parent_columns)
        unique = any(one <= columns for one in targets[name].unique)
        if key.acts and key.parent == name and not unique:
            # At the start, the shards that were there have been compared.
            return f"the {key} refers to columns that are no unique key of {name}"
    return ""


def _parent_of(
    shard: KeyedShard, key: ForeignKey, members: Mapping[Member, KeyedShard]
) -> KeyedShard | None:
    return members.get(Member(shard.member.source, key.parent))


def _mapped_otherwise(shard: KeyedShard, members: Mapping[Member, KeyedShard]) -> str:
    """Which key of a shard would not hold in the target, since its ends are mapped otherwise."""
    for key, _ in shard.keys:
        parent = _parent_of(shard, key, members)
        if parent is None:
            continue
        for column, of_parent in zip(key.columns, key.parent_columns, strict=True):
            if shard.upper(column) != parent.upper(of_parent):
                return (
                    f"the task file maps {column} of {shard.member} otherwise than the {of_parent}"
                    f" of {parent.member} that it refers to"
                )
    return ""


def _without_extracted(
    keys: Iterable[ForeignKey], shard: KeyedShard, members: Mapping[Member, KeyedShard]
) -> frozenset[ForeignKey]:
    """The keys of the target without columns that rows of a shard and of its parent have the same
    extracted value in: these keep shards apart, and are no part of the shard's own keys."""
    parents = {name: _parent_of(shard, key, members) for key, name in shard.keys}
    return frozenset(_own_part(key, shard, parents.get(key.parent)) for key in keys)


def _own_part(key: ForeignKey, shard: KeyedShard, parent: KeyedShard | None) -> ForeignKey:
    # SET NULL would set the extracted column, too.
    if parent is None or "SET NULL" in (key.on_delete, key.on_update):
        return key
    mine, its = shard.extracted, parent.extracted
    pairs = [
        (column, of_parent)
        for column, of_parent in zip(key.columns, key.parent_columns, strict=True)
        if column not in mine or mine[column] != its.get(of_parent)
    ]
    if not pairs:
        return key
    columns, parent_columns = zip(*pairs, strict=True)
    return replace(key, columns=columns, parent_columns=parent_columns)


def _apart(shards: Iterable[KeyedShard], columns: Iterable[str]) -> bool:
    """Whether no two shards can have the same values in these columns of their target."""
    names = sorted(columns)
    marks = [
        tuple((shard.upper(name), shard.extracted.get(name)) for name in names) for shard in shards
    ]
    return len(set(marks)) == len(marks)


def meeting_values(
    ties: Ties,
    targets: Mapping[TableName, TargetKeys],
    shards: Mapping[TableName, Sequence[KeyedShard]],
    *,
    keeps_duplicates: bool,
) -> dict[TableName, Obstacle]:
    """Parents in which two shards could have the same value unnoticed, by the child.

    Where no unique key of the target tells them apart, the row of one shard would take along the
    children of another's; where one does, the second row is a fault (``rows.duplicate``), unless
    the full copy takes both for one row (``keeps_duplicates``).
    """
    found = {}
    for name in sorted(ties.referenced):
        for key in targets[name].foreign:
            columns = frozenset(key.parent_columns)
            if not key.acts or _apart(shards[key.parent], columns):
                continue
            meaning = "a change in one shard could reach rows of another"
            if not any(unique <= columns for unique in targets[key.parent].unique):
                found[name] = Obstacle(
                    f"the {key} refers to columns that are no unique key of {key.parent}, so"
                    f" shards may have the same values, and {meaning}",
                    "let the key refer to a unique key",
                )
            elif keeps_duplicates:
                found[name] = Obstacle(
                    f"shards of {key.parent} may have the same keys, which the full copy takes for"
                    f" one row, so {meaning}",
                    "on-duplicate-logical: error in the loader of each source",
                    in_task_file=True,
                )
    return found


def _routed(shard: KeyedShard) -> frozenset[ForeignKey]:
    return frozenset(
        ForeignKey(key.columns, parent, key.parent_columns, key.on_delete, key.on_update)
        for key, parent in shard.keys
        if parent is not None
    )


async def foreign_keys(
    connection: Connection, schema: str
) -> dict[TableName, tuple[ForeignKey, ...]]:
    """The foreign keys of a schema's tables. Raises the driver's error."""
    found: dict[tuple[TableName, str], list[tuple[object, ...]]] = {}
    for row in await connection.fetch(_KEYS_SQL, (schema, schema)):
        found.setdefault((TableName(str(row[0]), str(row[1])), str(row[2])), []).append(row)
    keys: dict[TableName, tuple[ForeignKey, ...]] = {}
    for (table, _), rows in found.items():
        *_, parent_schema, parent, _, on_delete, on_update = rows[0]
        rules = ("RESTRICT" if str(r) in _NO_ACTION else str(r) for r in (on_delete, on_update))
        key = ForeignKey(
            tuple(folded(str(row[3])) for row in rows),
            TableName(str(parent_schema), str(parent)),
            tuple(folded(str(row[6])) for row in rows),
            *rules,
        )
        keys[table] = (*keys.get(table, ()), key)
    return keys


async def ties_of(
    task: TaskToCheck, target: Connection, shards: Mapping[TableName, Sequence[Shard]]
) -> Ties:
    """The ties of a task's targets; ``shards``: all members of each.

    Raises DatabaseUnavailableError, or the driver's error.
    """
    if not any(
        not s.logs_cascades and any(key.acts for key in s.table.definition.foreign_keys)
        for of in shards.values()
        for s in of
    ):
        return Ties()
    routed = {shard.member: name for name, of in shards.items() for shard in of}
    every: dict[TableName, list[KeyedShard]] = {name: [] for name in shards}
    for source in task.sources:
        mine = [m for m in routed if m.source == source.source_id]
        keys = await _keys_at(source.address, {member.name.schema for member in mine})
        for name, of in shards.items():
            every[name] += [
                _keyed(source, shard, keys, routed)
                for shard in of
                if shard.member.source == source.source_id
            ]
    tables = await read_targets(target, [*shards])
    found: dict[TableName, tuple[ForeignKey, ...]] = {}
    for schema in sorted({name.schema for name in tables}):
        found |= await foreign_keys(target, schema)
    targets = {
        name: TargetKeys(
            frozenset(found.get(name, ())),
            tuple(frozenset(map(folded, key.columns)) for key in table.keys),
        )
        for name, table in tables.items()
    }
    ties = find_ties(
        every,
        targets,
        holds_rows=task.holds_rows,
        connects=task.connects_shards,
        complete=not task.resuming,
    )
    if colliding := meeting_values(ties, targets, every, keeps_duplicates=task.keeps_duplicates):
        return Ties({}, colliding)
    if ties.referenced and (obstacle := await _not_enforced(target)):
        return Ties({}, dict.fromkeys(ties.referenced, obstacle))
    return ties


async def _not_enforced(target: Connection) -> Obstacle | None:
    """What keeps a TiDB from acting by its foreign keys, and what to do; None where it acts.

    Before version 6.6 TiDB takes foreign keys and ignores them (its page "FOREIGN KEY
    Constraints").
    """
    ((text,),) = await target.fetch("SELECT VERSION()")
    version = parse_version(str(text))
    if version is None or version.flavour != "TiDB":
        return None
    if version.number < _TIDB_ENFORCES:
        return Obstacle(
            f"the target is {version}, which does not enforce foreign keys",
            "Upgrade the target to TiDB 8.5 or newer, or drop the foreign keys of the shards",
        )
    settings = await target.fetch("SHOW GLOBAL VARIABLES LIKE 'tidb_enable_foreign_key'")
    if [str(value).upper() for _, value in settings] == ["ON"]:
        return None
    return Obstacle(
        "the target does not enforce foreign keys: its tidb_enable_foreign_key is OFF",
        "Run SET GLOBAL tidb_enable_foreign_key = ON on the target, and create the foreign keys of"
        " its tables again",
    )


async def logs_cascades(source: SourceToCheck) -> bool:
    """Whether a source logs what its foreign keys change. Raises DatabaseUnavailableError, or the
    driver's error."""
    with closing(Connection(source.address)) as connection:
        native = await connection.fetch(NATIVE_FOREIGN_KEYS)
    return [value for _, value in native] == ["OFF"]


async def has_acting_keys(source: SourceToCheck) -> bool:
    """Whether a table that is replicated has a foreign key with an action. Raises
    DatabaseUnavailableError, or the driver's error."""
    with closing(Connection(source.address)) as connection:
        rows = await connection.fetch(_ACTING_SQL)
    return any(source.router.route(str(schema), str(table)) for schema, table in rows)


async def _keys_at(
    address: DatabaseAddress, schemas: Iterable[str]
) -> dict[TableName, tuple[ForeignKey, ...]]:
    with closing(Connection(address)) as connection:
        found: dict[TableName, tuple[ForeignKey, ...]] = {}
        for schema in sorted(schemas):
            found |= await foreign_keys(connection, schema)
    return found


def _keyed(
    source: SourceToCheck,
    shard: Shard,
    keys: Mapping[TableName, tuple[ForeignKey, ...]],
    routed: Mapping[Member, TableName],
) -> KeyedShard:
    name = shard.member.name
    filtered = source.expression_filters.concern(name.schema, name.table)
    return KeyedShard(
        shard.member,
        tuple((k, routed.get(Member(source.source_id, k.parent))) for k in keys.get(name, ())),
        shard.table.row_key is not None,
        shard.rules,
        filtered or bool(source.event_filter.rows_left_out(name.schema, name.table)),
        shard.logs_cascades,
    )
