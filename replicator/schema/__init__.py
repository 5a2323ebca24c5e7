"""Table structures and the registry of their versions."""
