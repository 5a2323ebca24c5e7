"""The events of the log: one table, from which the pages of the log and the runbook are made."""
