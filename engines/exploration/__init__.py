"""Building a model from its program: states, matrix, labels and rewards."""
