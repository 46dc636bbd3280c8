"""Layouts of a matrix on the device, each built there from its CSR arrays; one format a file."""
