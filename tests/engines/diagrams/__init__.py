"""Tests of decision diagrams and their expansion."""
