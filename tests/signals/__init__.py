"""Signals at random moments of a run: how it ends, and what it leaves behind."""
