"""Checks of the structures and keys of the members, compared with each other and the target."""
