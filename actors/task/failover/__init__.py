"""Going on with another server behind a source's address."""
