"""Statistical model checking: sampled paths, stopping rules and monitors."""
