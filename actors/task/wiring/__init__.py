"""Building the actors that run while a task follows its sources."""
