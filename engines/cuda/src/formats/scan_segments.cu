// Products of entries and their sums over segments, the rows, by a backward segmented scan within
// tiles of 1024 entries (D. Bosnacki, S. Edelkamp, D. Sulewski, A. Wijs, Parallel probabilistic
// model checking on general purpose graphics processors, 2011, Algorithms 4 and 5).

#define TILE 1024

// Sets the flag of the entry that each segment starts with, one bit an entry.
extern "C" __global__ void flag_segments(
    const OFFSET* __restrict__ offsets, OFFSET rows, unsigned* flags)
{
    OFFSET row = thread_number();
    if (row >= rows) return;
    OFFSET begin = offsets[row];
    if (begin < offsets[row + 1]) atomicOr(&flags[begin / 32], 1u << (begin % 32));
}

// One block of TILE threads a tile. Where a segment or the tile starts, `sums` gets the sum from
// there to the end of the segment or of the tile.
extern "C" __global__ void scan_segments(
    const int* __restrict__ columns, const double* __restrict__ values, OFFSET entries,
    const unsigned* __restrict__ flags, const double* __restrict__ x, const double* before_slot,
    double stop_below, double* sums)
{
    if (*before_slot < stop_below) return;
    __shared__ double of_warp[32];
    __shared__ unsigned flags_of_warp[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    OFFSET entry = (OFFSET)blockIdx.x * TILE + threadIdx.x;
    double sum = entry < entries ? values[entry] * x[columns[entry]] : 0.0;
    unsigned starts = entry - lane < entries ? flags[(entry - lane) / 32] : 1u;
    unsigned later = lane == 31 ? 0u : starts & (0xffffffffu << (lane + 1));
    int end = later ? __ffs(later) - 1 : 32;
    for (int reach = 1; reach < 32; reach *= 2) {
        double other = __shfl_down_sync(0xffffffff, sum, reach);
        if (lane + reach < end) sum += other;
    }
    if (lane == 0) {
        of_warp[warp] = sum;
        flags_of_warp[warp] = starts;
    }
    __syncthreads();
    if (entry >= entries || !(starts >> lane & 1u || threadIdx.x == 0)) return;
    // A segment that reaches the end of its warp goes on in those behind it.
    for (int next = warp + 1; end == 32 && next < 32 && !(flags_of_warp[next] & 1u); next++) {
        sum += of_warp[next];
        if (flags_of_warp[next]) break;
    }
    sums[entry] = sum;
}
