"""Row events to lines: the compiled decoder, and the reference decoder, value by value."""
