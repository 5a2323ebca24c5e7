"""What a task has done since its process started."""
