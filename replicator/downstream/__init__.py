"""The downstream database: meta tables, DDL execution, writing rows."""
