"""UMB, the Unified Markov Binary format that PRISM and Storm share.

A UMB file is a tar archive, plain or compressed: `index.json`, then one member an array. It is read
once, front to back, and only the members that `index.json` promises; indices are copied again, to
the width that `engines.model.csr.index_dtype` names. Nothing is allocated before the tar header,
`index.json` and the file's own size agree on it. What was read does not change with the file.
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
