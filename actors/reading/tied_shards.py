"""Statements on shards of tied targets: what they may do to the foreign keys that tie them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from replicator.checks.schema.tied_tables import KeyedShard, TargetKeys, obstacle_of_new
from replicator.ddl.analysis.foreign_keys import ForeignKey, declared_keys
from replicator.ddl.parser.statement import ParsedStatement, TableRole
from replicator.mysql.names import Member, TableName
from replicator.routing.columns.member_columns import NO_COLUMN_RULES, ColumnRules
from replicator.schema.effects.ddl_effects import DdlError, Effect, EffectKind, Route

_KEY_WORDS = frozenset({"FOREIGN", "REFERENCES", "CONSTRAINT"})


@dataclass(frozen=True, slots=True)
class TiedShards:
    """The tied targets with their keys, as shards of one source meet them.

    ``filtered``: whether rules of the task file leave out rows of a table.
    """

    source: str = ""
    targets: Mapping[TableName, TargetKeys] = field(default_factory=dict)
    columns: ColumnRules = NO_COLUMN_RULES
    filtered: Callable[[TableName], bool] = lambda _: False

    def refuse_other_keys(self, parsed: ParsedStatement, effect: Effect, route: Route) -> None:
        """Raise DdlError where a shard of a tied target would not have its foreign keys."""
        if effect.target not in self.targets:
            return
        if effect.kind is EffectKind.CREATE:
            self._refuse_created(parsed, effect, route)
        elif {token.keyword for token in parsed.tokens} & _KEY_WORDS:
            raise DdlError(
                f"{effect.table} gets or loses a foreign key or another constraint. The target"
                f" changes rows of {effect.target} with those of their parents, by the foreign"
                " keys that all shards have. With other keys it would not make the same changes"
                " as the shard. If the shard gets its former keys back before its rows change,"
                " `binlog skip` leaves the statement out"
            )

    def _refuse_created(self, parsed: ParsedStatement, effect: Effect, route: Route) -> None:
        keys = declared_keys(parsed)
        if keys is None:
            reason = "the task can't tell its foreign keys from the statement"
        else:
            own = tuple((key, route(key.parent)) for key in keys)
            shard = self._keyed(effect.table, own, has_key=_has_key(parsed, effect, route))
            parents = [self._keyed(key.parent, (), has_key=True) for key in keys]
            reason = obstacle_of_new(effect.target, shard, parents, self.targets)
        if reason:
            raise DdlError(
                f"{effect.table} is created as a shard of {effect.target}, which foreign keys tie"
                f" to other targets, and can't be one: {reason}. If it has got no rows: at the"
                " source, DROP it and CREATE it with the foreign keys of the other shards; `binlog"
                " skip` leaves this statement out"
            )

    def _keyed(
        self,
        name: TableName,
        keys: tuple[tuple[ForeignKey, TableName | None], ...],
        *,
        has_key: bool,
    ) -> KeyedShard:
        member, rules = Member(self.source, name), self.columns.of(name.schema, name.table)
        return KeyedShard(member, keys, has_key, rules, self.filtered(name), logs=False)


NONE_TIED = TiedShards()


def _has_key(parsed: ParsedStatement, effect: Effect, route: Route) -> bool:
    words = [token.keyword for token in parsed.tokens]
    patterns = parsed.named(TableRole.LIKE)
    alike = any(route(TableName(of.schema, of.table)) == effect.target for of in patterns)
    return alike or ("PRIMARY", "KEY") in pairwise(words)
