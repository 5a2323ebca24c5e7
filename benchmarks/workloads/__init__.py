"""What is written to the sources, each workload in a module of its own."""
