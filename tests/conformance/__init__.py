"""PRISM's own regression suite, run by PRISM's own prism-auto, with prism-gpu as the program."""
