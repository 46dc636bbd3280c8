"""Numerical engines over arrays; they know neither PRISM nor Java."""
