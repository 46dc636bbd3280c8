"""The plug between PRISM and the engines: relinking, Java sources, the backend."""
