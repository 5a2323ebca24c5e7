"""Building what runs while a task follows its sources."""
