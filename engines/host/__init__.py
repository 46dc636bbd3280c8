"""The compiled library of the CPU engine, and thin classes over it."""
