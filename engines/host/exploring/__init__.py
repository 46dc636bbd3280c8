"""Searching the states of a program, and building its matrix, on the CPU's threads."""
