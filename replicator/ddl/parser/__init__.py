"""From the text of a statement to what it is: tokens, kinds, the tables that it names."""
