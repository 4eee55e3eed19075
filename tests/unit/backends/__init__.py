"""The backends without an engine: what is asked of one, and how its answers are read."""
