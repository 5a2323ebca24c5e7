"""The structures and keys of the members against one another and their target."""
