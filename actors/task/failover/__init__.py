"""Following another server at a source's address."""
