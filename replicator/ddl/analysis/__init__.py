"""What a statement does to rows and columns, as far as its text tells. Pure."""
