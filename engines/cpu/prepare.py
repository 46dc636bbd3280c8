"""From a matrix to the iteration matrix, on the host."""

from engines.host.products import sums_beside_diagonal as off_diagonal_row_sums
from engines.host.scaling import balance_matrix, scaled

__all__ = ["balance_matrix", "off_diagonal_row_sums", "scaled"]
