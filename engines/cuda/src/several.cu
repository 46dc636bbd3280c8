// Several devices: what they send each other after a sweep, and one decision on convergence.

typedef unsigned long long Number;

#define WARP 32

// Rows of an inbox, a table of 64-bit words that the other devices write, a column each: the number
// of the last meeting that a device has come to, and its largest change, by even and odd meetings.
enum { CAME, CHANGES };

// What a device keeps for itself: how many meetings are over, how many blocks of the present one
// have sent their part, and whether somebody once did not come.
enum { MEETINGS, SENT, MISSED };

// What was written before the word, here or by whoever was waited for here, is seen by whoever
// acquires it: `release` and `acquire` of the PTX memory model, among all devices.
__device__ void release(Number* word, Number value)
{
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

__device__ Number acquire(const Number* word)
{
    Number value;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

__device__ Number nanoseconds()
{
    Number now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// Sends what others read of this device's states, comes to the meeting, and waits for all others.
//
// `sends` has three words for each reader: the first state, the one behind the last, and where the
// reader keeps its vector. The last block to have sent goes on alone: it tells all others the
// largest change of this sweep, raises this device's number at them, waits for theirs, at most
// `patience` nanoseconds, and keeps the largest change of all. Who did not come in time is put into
// `missing`, and nobody is waited for again.
//
// Two vectors and two rows of changes are enough, and numbers only rise, from replay to replay of a
// captured graph: a device writes what belongs to meeting n + 2 only after meeting n + 1, to which
// nobody comes before it has read what belongs to meeting n.
extern "C" __global__ void __launch_bounds__(256) send_and_meet(
    const double* __restrict__ x_new, const long long* __restrict__ sends, int num_sends,
    const long long* __restrict__ inboxes, int devices, int place, int sweep, Number* own,
    const double* changes, double* merged, Number patience, int* missing)
{
    __shared__ bool is_last;
    long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long threads = (long long)gridDim.x * blockDim.x;
    for (int send = 0; send < num_sends; send++) {
        long long end = sends[3 * send + 1];
        double* there = (double*)sends[3 * send + 2];
#pragma unroll 4
        for (long long state = sends[3 * send] + thread; state < end; state += threads)
            there[state] = x_new[state];
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        // Fences on both sides: what this block has sent comes before its count, and what others
        // have sent before whatever the last block does.
        __threadfence_system();
        is_last = atomicAdd(&own[SENT], (Number)1) == gridDim.x - 1;
        __threadfence_system();
    }
    __syncthreads();
    if (!is_last || threadIdx.x >= WARP) return;
    int other = threadIdx.x;
    bool is_other = other < devices && other != place, is_missing = false;
    Number number = own[MEETINGS] + 1, row = (CHANGES + number % 2) * devices;
    double largest = changes[sweep];
    const Number* inbox = (const Number*)inboxes[place];
    if (is_other) {
        Number* there = (Number*)inboxes[other];
        *(volatile Number*)&there[row + place] = (Number)__double_as_longlong(largest);
        release(&there[CAME * devices + place], number);
    }
    if (is_other && !own[MISSED]) {
        Number since = nanoseconds();
        while (acquire(&inbox[CAME * devices + other]) < number) {
            if (nanoseconds() - since > patience) {
                is_missing = true;
                *(volatile int*)missing = other + 1;
                break;
            }
            __nanosleep(20);
        }
    }
    if (is_other)
        largest = __longlong_as_double((long long)*(const volatile Number*)&inbox[row + other]);
    for (int lane = WARP / 2; lane > 0; lane /= 2) {
        double there = __shfl_down_sync(0xffffffff, largest, lane);
        if (there > largest) largest = there;
    }
    bool missed = __any_sync(0xffffffff, is_missing);
    if (threadIdx.x > 0) return;
    merged[sweep] = largest;
    own[MEETINGS] = number;
    own[SENT] = 0;
    if (missed) own[MISSED] = 1;
}

// Writes the largest change of a sweep over all devices to where this device looks it up; `slots`
// holds the addresses of each device's own slots. One thread.
extern "C" __global__ void merge_slots(const long long* __restrict__ slots, int devices, int sweep,
                                       double* merged)
{
    double largest = 0.0;
    for (int device = 0; device < devices; device++) {
        double change = ((const volatile double*)slots[device])[sweep];
        if (change > largest) largest = change;
    }
    merged[sweep] = largest;
}
