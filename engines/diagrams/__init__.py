"""Models as decision diagrams: matrices, vectors and sets, expanded into arrays."""
