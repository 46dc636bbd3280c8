"""Iterative methods for linear systems; one method a file."""
