// Tables of distances (column - state) and values, in shared memory if STAGED.

__device__ double value_of(double2 pair) { return pair.x; }

__device__ int distance_of(double2 pair) { return (int)__double_as_longlong(pair.y); }

#ifdef STAGED
extern __shared__ double2 staged[];

// Copies a table to shared memory; the caller waits for all threads.
template <class Number>
__device__ const Number* copied(const Number* table, int count, Number* to)
{
    for (int i = threadIdx.x; i < count; i += blockDim.x) to[i] = table[i];
    return to;
}
#endif
