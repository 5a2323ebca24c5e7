"""DDL statements: recognising, normalising, re-targeting."""

from replicator.ddl.normalise import normalise
from replicator.ddl.recognise import recognise
from replicator.ddl.retarget import TableMapping, retarget, retarget_schema
from replicator.ddl.statement import (
    Guard,
    Recognised,
    SchemaReference,
    Span,
    StatementKind,
    TableReference,
    TableRole,
)
from replicator.ddl.tokens import Token, TokenKind, tokenise

__all__ = [
    "Guard",
    "Recognised",
    "SchemaReference",
    "Span",
    "StatementKind",
    "TableMapping",
    "TableReference",
    "TableRole",
    "Token",
    "TokenKind",
    "normalise",
    "recognise",
    "retarget",
    "retarget_schema",
    "tokenise",
]
