"""Which checks there are, what they are told, and running them."""
