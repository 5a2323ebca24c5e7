"""What a task needs of its target."""
