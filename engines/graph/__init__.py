"""Analyses of a model's graph: qualitative reachability, components, end components, quotients."""
