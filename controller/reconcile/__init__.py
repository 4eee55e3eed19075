"""Observe reads, plan decides, act does."""
