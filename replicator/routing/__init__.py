"""The rules of the task file for tables: routes, allow lists, filters."""
