"""The entry point of session images: agents in tabs, and the question at their end (design.md 6).

Standard library, git and tmux only, as the rest of the capsule.
"""
