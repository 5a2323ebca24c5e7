"""What became of a target without coordination: the history of its changes. Pure."""
