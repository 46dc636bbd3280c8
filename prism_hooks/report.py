"""The line that `-gpuinfo` prints for a solve."""

from __future__ import annotations

from engines.result import SolveResult


def solve_line(result: SolveResult, device_number: int) -> str:
    """Return engine, kernel, format, sweeps and speed of a solve in one line.

    Parameters
    ----------
    result
        A finished solve.
    device_number
        Which GPU the run uses.
    """
    cost = result.cost
    parts = [cost.engine, f"kernel {cost.kernel}", f"format {cost.format}"]
    parts.append(f"solved in {result.seconds:.4f} s")
    parts.append(f"{result.iterations} sweeps")
    if result.sweep_seconds > 0.0 and cost.bytes_per_sweep:
        rate = cost.bytes_per_sweep / result.sweep_seconds
        parts.append(f"{result.sweep_seconds * 1e6:.2f} us a sweep")
        parts.append(f"{rate / 1e9:.0f} GB/s")
        if cost.engine.startswith("GPU"):
            from engines.cuda.bandwidth import copy_bandwidth

            ceiling = copy_bandwidth(device_number)
            parts.append(f"{100 * rate / ceiling:.0f} % of copy bandwidth")
    parts.append(f"residual {result.residual:.2e}")
    parts.append("two-sided" if result.two_sided else "one-sided")
    return "prism-gpu: " + ", ".join(parts)
