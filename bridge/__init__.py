"""The bridge to the outside: PRISM, Java, files and the command line; no numerics."""
