"""Real parts for tests, demo and benchmarks: an API server, and an engine that can be killed."""
