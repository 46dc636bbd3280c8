"""A warm process that makes the runs of `prism-gpu`, as PRISM's own `ngprism` does.

`client`, and what it imports (`place`, `circumstances`, `wire`), are loaded at the start of every
command, before anything else: they import what Python has loaded by itself, and `_socket`.
"""
