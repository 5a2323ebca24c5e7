"""The events of the log: one table from which documentation pages are made."""
