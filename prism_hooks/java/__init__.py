"""The Java side of the plug: sources compiled on first use."""
