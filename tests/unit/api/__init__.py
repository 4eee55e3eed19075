"""The vocabulary of the API, and how raw objects become values."""
