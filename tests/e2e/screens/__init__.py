"""The terminal of a session, driven through a real tmux."""
