"""Effects of a statement on rows and columns, as far as its text shows them."""
