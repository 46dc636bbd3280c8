"""Which device runs what: alone above the host's engines and CUDA's, it imports both."""
