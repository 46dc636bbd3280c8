"""Checking properties without PRISM: the walk over the property tree, and the report."""
