"""The full copy of the sources, before their binlogs are followed."""
