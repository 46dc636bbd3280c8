"""What is swept, as data, and what must be offered by whoever sweeps it."""
