"""What a statement means by the session that it ran in, and how another server is made to agree."""
