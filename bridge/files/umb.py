"""UMB, the Unified Markov Binary format that PRISM and Storm share.

A UMB file is a tar archive, plain or compressed: `index.json`, then one member an array. A plain
file is memory-mapped: probabilities, rewards and exit rates are views of the file's pages, and only
the indices are copied, to the width that `engines.formats.csr.index_dtype` names. Compressed files
are streamed. Nothing is allocated before the tar header, `index.json` and the file's own size agree
on it. Do not change or truncate a mapped file while its arrays are in use.
"""

from __future__ import annotations

from bridge.files.umb_content import Actions, UmbFile, UmbRewards
from bridge.files.umb_reader import read_umb
from bridge.files.umb_valuations import StateValuations, pack_valuations
from bridge.files.umb_writer import Compression, write_umb

__all__ = [
    "Actions",
    "Compression",
    "StateValuations",
    "UmbFile",
    "UmbRewards",
    "pack_valuations",
    "read_umb",
    "write_umb",
]
