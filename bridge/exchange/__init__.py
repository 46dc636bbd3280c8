"""Solving PRISM's operators on another machine: export, solve, report."""
