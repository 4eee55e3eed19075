"""The API: group, names, labels, vocabulary, spec and status types, and their validation."""
