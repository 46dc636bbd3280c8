"""`python -m bridge` is the command `prism-gpu`."""

from bridge.cli import main

main()
