"""Converts row events to lines: a compiled decoder, and a reference decoder value by value."""
