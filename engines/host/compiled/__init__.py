"""The compiled library: loading it, its arrays, and what needs nothing else of ours."""
