"""DDL statements: parsing, analysing, normalising, re-targeting."""
