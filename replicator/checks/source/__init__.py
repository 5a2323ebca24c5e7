"""What a task needs of its sources."""
