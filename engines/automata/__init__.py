"""Linear temporal logic: formulas, limit-deterministic automata, products with models."""
