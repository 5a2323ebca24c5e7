"""The states of groups and the decisions of locks, when another server takes a source over: pure.

Both name places in the source's binlog (`replicator.downstream.meta.failover_positions`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from actors.lock_state import dump_decision, dump_group, load_decision, load_group
from replicator.sharding.items import Cutover
from replicator.watermark import Place

Move = Callable[[Place], Place]
"""From a place in the former binlog to that in the new one."""


def moved_group(text: str, move: Move) -> str:
    """The state of a group of the source."""
    state = load_group(text)
    members = ((name, replace(state, since=move(state.since))) for name, state in state.members)
    return dump_group(replace(state, members=tuple(members)))


def moved_decision(text: str, source: str, owner: str, move: Move, back: Move) -> str:
    """A decision with a cutover of the source, whose ``owner`` may be another one.

    ``back`` is for a cutover at a row, of whose transaction nothing is known: it moves to the last
    statement before it, or to the saved position. Unless it is forced, its members have had the
    item since then: the last to get it did so by a statement. So it means the same there.
    """
    decision = load_decision(text)

    def moved(cutover: Cutover) -> Cutover:
        at_a_row = cutover.at.ordinal > 0 and not cutover.forced
        return replace(cutover, at=(back if at_a_row else move)(cutover.at))

    cutovers = {
        name: moved(cutover) if name == source else cutover
        for name, cutover in decision.cutovers.items()
    }
    event = decision.event
    if owner == source:
        at = move(Place(event.statement.transaction, 0))
        event = replace(event, statement=replace(event.statement, transaction=at.transaction))
    return dump_decision(replace(decision, cutovers=cutovers, event=event))
