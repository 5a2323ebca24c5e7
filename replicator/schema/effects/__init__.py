"""The effects of statements on structures, columns and existing rows."""
