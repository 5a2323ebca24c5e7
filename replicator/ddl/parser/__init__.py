"""Parsing statements: tokens, the kind of a statement, and the tables that it names."""
