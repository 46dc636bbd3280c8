"""Solving one system: sweeps first, then what takes over where they converge slowly."""
