"""Walks along all paths of a matrix's diagram, entry by entry, in numba."""

from __future__ import annotations

import numpy as np
from numba import njit

# Sets how threads wait, before OpenMP is loaded.
from engines.cpu import kernels as _kernels  # noqa: F401
from engines.formats.csr import FloatArray, IndexArray

TERMINAL = 2**31 - 1


@njit(cache=True)
def walk(
    variables: IndexArray,
    low: IndexArray,
    high: IndexArray,
    values: FloatArray,
    root: int,
    numbering_low: IndexArray,
    numbering_high: IndexArray,
    low_counts: IndexArray,
    numbering_root: int,
    row_variables: IndexArray,
    column_variables: IndexArray,
    most: int,
    fill: bool,
    places: IndexArray,
    columns: IndexArray,
    entries: FloatArray,
) -> tuple[int, int]:
    """Follow the paths of a matrix that are not zero, depth first, for `most` entries and one more.

    Without `fill`, `places`, of shape (states,), takes how many entries each row has. Else it says
    where the next entry of each row is to be written in `columns` and `entries`, and is raised:
    those of a row come in the order of their columns. Returns the number of entries, and a node
    that tests a variable of none of the levels, or −1.
    """
    levels = len(row_variables)
    # On the way down each level leaves up to three of four children behind.
    size = 4 * levels + 4
    nodes, row_nodes = np.empty(size, np.int64), np.empty(size, np.int64)
    column_nodes, depths = np.empty(size, np.int64), np.empty(size, np.int64)
    states, firsts = np.empty(size, np.int64), np.empty(size, np.int64)
    nodes[0], row_nodes[0], column_nodes[0], depths[0] = root, numbering_root, numbering_root, 0
    states[0], firsts[0] = 0, 0
    height, found = 1, 0
    while height > 0:
        height -= 1
        node, depth = nodes[height], depths[height]
        row_node, column_node = row_nodes[height], column_nodes[height]
        state, column = states[height], firsts[height]
        if depth == levels:
            if variables[node] != TERMINAL:
                return found, node
            found += 1
            if fill:
                place = places[state]
                columns[place] = column
                entries[place] = values[node]
            places[state] += 1
            if found > most:
                return found, -1
            continue
        row_variable, column_variable = row_variables[depth], column_variables[depth]
        rows_first = row_variable < column_variable
        upper = row_variable if rows_first else column_variable
        lower = column_variable if rows_first else row_variable
        if variables[node] < upper:
            return found, node
        tests = variables[node] == upper
        # The last one pushed is the first one followed: for each row, columns have to ascend.
        for first_bit in (1, 0):
            half = node
            if tests:
                half = np.int64(high[node] if first_bit else low[node])
            if half == 0:
                continue
            deeper = variables[half]
            if deeper < lower:
                return found, half
            for second_bit in (1, 0):
                below = half
                if deeper == lower:
                    below = np.int64(high[half] if second_bit else low[half])
                if below == 0:
                    continue
                row_bit, column_bit = (
                    (first_bit, second_bit) if rows_first else (second_bit, first_bit)
                )
                row_below = numbering_high[row_node] if row_bit else numbering_low[row_node]
                column_below = (
                    numbering_high[column_node] if column_bit else numbering_low[column_node]
                )
                if row_below < 0 or column_below < 0:
                    continue
                nodes[height], depths[height] = below, depth + 1
                row_nodes[height], column_nodes[height] = row_below, column_below
                states[height] = state + (low_counts[row_node] if row_bit else 0)
                firsts[height] = column + (low_counts[column_node] if column_bit else 0)
                height += 1
    return found, -1
