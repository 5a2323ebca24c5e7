"""DDL statements: recognising, normalising, re-targeting."""
