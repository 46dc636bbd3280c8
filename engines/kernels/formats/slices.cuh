// Slices of 32 rows, whose entries are interleaved: entry k of a slice's row l lies at the slice's
// start plus 32 k + l, so that the k-th loads of a warp are adjacent. A row longer than the bound
// has the rest of its entries behind all slices, one after the other.
//
// What lies in slices is read once a sweep, so that it is loaded (__ldcs) to be the first that the
// caches forget: x, which is read again, stays. All loads say that they are from global memory
// (__ldg, __ldcs): beside a dictionary in shared memory the compiler has taken plain ones for shared.

#define LONG_ROW 255

#define SLICE_PARAMETERS \
    const unsigned char* __restrict__ lengths, const OFFSET* __restrict__ slices, int bound, \
    const OFFSET* __restrict__ long_rows, const OFFSET* __restrict__ tails, int num_long
#define SLICES lengths, slices, bound, long_rows, tails, num_long

struct Slices {
    const unsigned char* lengths;  // entries of a row, or LONG_ROW: more than the bound
    const OFFSET* slices;          // where each slice starts
    int bound;
    const OFFSET* long_rows;       // ascending
    const OFFSET* tails;           // where the rest of each long row starts, and the end of all
    int num_long;
};

struct SliceHead {
    unsigned char length;
    OFFSET first;
};

// How long a row is, and where its entries beyond the bound would have their entry 0.
struct Reach {
    OFFSET length, tail;
};

__device__ int place_among_long(const Slices& slices, OFFSET number)
{
    int low = 0, high = slices.num_long - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (__ldg(slices.long_rows + middle) < number) low = middle + 1;
        else high = middle;
    }
    return low;
}

__device__ SliceHead slice_head(const Slices& slices, OFFSET number)
{
    return SliceHead{__ldcs(slices.lengths + number),
                     __ldg(slices.slices + number / 32) + number % 32};
}

__device__ Reach reach_of(const Slices& slices, const SliceHead& head, OFFSET number)
{
    if (head.length != LONG_ROW) return Reach{head.length, 0};
    int place = place_among_long(slices, number);
    OFFSET tail = __ldg(slices.tails + place) - slices.bound;
    return Reach{__ldg(slices.tails + place + 1) - tail, tail};
}

__device__ OFFSET slot_at(const Slices& slices, OFFSET first, OFFSET tail, OFFSET k)
{
    return k < slices.bound ? first + 32 * k : tail + k;
}
