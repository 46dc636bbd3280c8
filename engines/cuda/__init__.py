"""The CUDA engine: CuPy, with kernels of our own."""
