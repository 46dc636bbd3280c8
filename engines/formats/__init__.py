"""How a transition matrix is laid out for a sweep; one format a file."""
