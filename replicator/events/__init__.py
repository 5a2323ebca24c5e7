"""The events of the log: one table, from which `docs/logs.md` and `docs/warnings.md` are made."""
