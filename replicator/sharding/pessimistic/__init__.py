"""The version rule: groups, items, locks."""
