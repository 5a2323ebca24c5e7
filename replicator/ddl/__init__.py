"""DDL statements: recognising, normalising, re-targeting."""

from replicator.ddl.identifiers import quote_identifier, quote_table
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
    "quote_identifier",
    "quote_table",
    "recognise",
    "retarget",
    "retarget_schema",
    "tokenise",
]
