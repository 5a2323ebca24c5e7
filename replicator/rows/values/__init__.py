"""Values of single types, from their bytes in a row image to text."""
