"""PRISM's expression and property language: parsed, resolved, evaluated over all states at once."""
