"""What the custom resource definitions promise, held against the code."""
