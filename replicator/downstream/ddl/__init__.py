"""Making targets and executing schema changes on them, exactly once."""
