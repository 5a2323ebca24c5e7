"""Table structures: what they are, how a server tells them, which types take which."""
