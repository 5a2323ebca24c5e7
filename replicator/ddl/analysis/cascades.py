"""Foreign keys that change rows of their table when those of the parent change.

InnoDB makes these changes beneath the log: MariaDB (10.11, 11.8) and MySQL up to 9.5 log the rows
of the parent only. From 9.6 on a MySQL makes them above it and logs them, unless
innodb_native_foreign_keys is on (its release notes; seen on 5.6 and 9.7).
"""

from __future__ import annotations

from collections.abc import Sequence

from replicator.ddl.parser.tokens import Token


def acts_on_rows(tokens: Sequence[Token]) -> bool:
    """Whether a statement, or the definition of a key, has ON DELETE or ON UPDATE with an action.

    RESTRICT and NO ACTION change nothing.
    """
    words = [token.keyword for token in tokens]
    return any(
        words[at : at + 2] in (["ON", "DELETE"], ["ON", "UPDATE"])
        and words[at + 2 : at + 3] in (["CASCADE"], ["SET"])
        for at in range(len(words))
    )
