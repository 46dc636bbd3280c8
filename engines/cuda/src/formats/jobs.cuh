// The hybrid representation of a matrix: sparse blocks, each stored once, and jobs that say where
// they lie (D. Parker, Implementation of symbolic model checking for probabilistic systems, 2002,
// chapter 6).
//
// A strip is a run of states that have the same jobs; state i of a strip that starts at s has local
// row i - s of every block. All loads say that they are from global memory: they are of few arrays
// that neighbouring rows share, and that the caches hold.

#define GUIDED 64  // states a guide, as in engines/cuda/diagram_upload.py

#define JOBS_PARAMETERS \
    const int* __restrict__ guides, const int* __restrict__ strip_states, \
    const int* __restrict__ strip_jobs, const int2* __restrict__ jobs, \
    const int* __restrict__ job_choices, const int* __restrict__ local_offsets, \
    const double2* __restrict__ local_entries
#define JOBS guides, strip_states, strip_jobs, jobs, job_choices, local_offsets, local_entries

struct Jobs {
    const int* guides;              // the strip of every GUIDED-th state, and the last strip
    const int* strip_states;        // where each strip starts, and the number of states
    const int* strip_jobs;          // where the jobs of each strip start
    const int2* jobs;               // of each job, its block's first local row and its first column
    const int* job_choices;         // null for a chain
    const int* local_offsets;       // where the entries of each local row start
    const double2* local_entries;   // value, and column less the job's first as an integer
};

// The jobs of a row, and its local row in their blocks.
struct Span {
    int first, last, local;
};

// The entries of a job's local row, and the column that theirs count from.
struct Run {
    int begin, end, column;
};

__device__ int strip_of(const Jobs& all, int state)
{
    int low = __ldg(all.guides + state / GUIDED), high = __ldg(all.guides + state / GUIDED + 1);
    while (low < high) {
        int middle = high - (high - low) / 2;
        if (__ldg(all.strip_states + middle) <= state) low = middle;
        else high = middle - 1;
    }
    return low;
}

__device__ Span span_of(const Jobs& all, int state)
{
    int strip = strip_of(all, state);
    return Span{__ldg(all.strip_jobs + strip), __ldg(all.strip_jobs + strip + 1),
                state - __ldg(all.strip_states + strip)};
}

__device__ Run run_of(const Jobs& all, const Span& span, int job)
{
    int2 there = __ldg(all.jobs + job);
    const int* offsets = all.local_offsets + there.x + span.local;
    return Run{__ldg(offsets), __ldg(offsets + 1), there.y};
}

// Calls `take(column, value)` for each entry of a row, columns ascending within a choice. A job's
// run is looked up while that of the job before it is at work.
template <class Take>
__device__ void for_entries(const Jobs& all, const Span& span, Take take)
{
    if (span.first >= span.last) return;
    Run next = run_of(all, span, span.first);
    for (int job = span.first; job < span.last; job++) {
        Run run = next;
        next = run_of(all, span, min(job + 1, span.last - 1));
        for (int entry = run.begin; entry < run.end; entry++) {
            double2 local = __ldg(all.local_entries + entry);
            take(run.column + (int)__double_as_longlong(local.y), local.x);
        }
    }
}
