"""Models in files: PRISM's explicit text files, and the Unified Markov Binary format."""
