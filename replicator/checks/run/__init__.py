"""All checks, their input, and running them."""
