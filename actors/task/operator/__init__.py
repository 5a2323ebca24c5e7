"""The operator's requests to a task: commands, overrides, structures, answers to faults."""
