"""The session settings that a statement depends on, and how another server gets them."""
