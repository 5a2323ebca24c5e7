"""A task as a systemd service: its unit, and its notifications to systemd."""
