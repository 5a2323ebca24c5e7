"""Online schema changes by external tools."""
