"""Fixtures of the tests that have PRISM in their process."""

from tests.prism_hooks.bench import bench

__all__ = ["bench"]
