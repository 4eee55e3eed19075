"""The Docker backend on a real engine that can be killed."""
