"""What the operator asks of a task: commands, overrides, structures, answers to faults."""
