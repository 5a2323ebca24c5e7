"""Private, temporary database servers for the demo, the tests and the benchmarks."""
