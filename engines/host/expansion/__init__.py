"""Expansion of decision diagrams on the host."""
