"""The pure parts of the terminal."""
