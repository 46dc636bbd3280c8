"""Products and transposes of sparse matrices."""

from engines.host.products import Product as CsrProduct
from engines.host.products import from_entries, row_sums, transposed

__all__ = ["CsrProduct", "from_entries", "row_sums", "transposed"]
