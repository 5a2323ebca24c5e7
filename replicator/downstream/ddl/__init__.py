"""Creating targets and executing schema changes on them, exactly once."""
