"""Table structures: their model, how they are read from a server, and which types convert."""
