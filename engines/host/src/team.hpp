// Threads that share out the pieces of each sweep, and meet after it.
#pragma once

#include <time.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "matrix.hpp"

namespace prism_gpu {

// Started threads end with the call that made them: nothing of them is left where a process forks.
class Team {
   public:
    explicit Team(int threads) : threads_(std::max(threads, 1)) {}

    // Calls `run(me)` on each thread, this one included, after `prepare(of)` has learnt how many there
    // are: fewer than wanted where the system gives no more.
    template <class Prepare, class Run>
    void start(Prepare prepare, Run run) {
        std::vector<std::thread> others;
        std::atomic<bool> ready{false};
        auto wait = [&](int me) {
            ready.wait(false);
            run(me);
        };
        others.reserve(threads_ - 1);
        try {
            for (int me = 1; me < threads_; me++) others.emplace_back(wait, me);
        } catch (const std::system_error&) {
        }
        prepare(static_cast<int>(others.size()) + 1);
        ready = true;
        ready.notify_all();
        run(0);
        for (auto& other : others) other.join();
    }

    // Calls `work(piece)` for each piece, whichever thread comes first.
    template <class Work>
    void share(Index pieces, Work work) {
        if (threads_ == 1 || pieces < 2) {
            for (Index piece = 0; piece < pieces; piece++) work(piece);
            return;
        }
        std::atomic<Index> next{0};
        start([](int) {}, [&](int) {
            for (Index piece = next++; piece < pieces; piece = next++) work(piece);
        });
    }

   private:
    int threads_;
};

inline double seconds_of(clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Whether one may go: the last does not.
inline bool leaves(std::atomic<int>& members) {
    int present = members;
    while (present > 1)
        if (members.compare_exchange_weak(present, present - 1)) return true;
    return false;
}

// Calls `work(me, piece)` for each piece of one phase after the other; no phase begins before all pieces
// of that before are done. `next` returns how many pieces the next phase has, or -1 for the end; it is
// called by one thread while the others wait, and must not throw.
//
// Others that compute on the machine may take a core away for longer than a phase lasts, and all would
// wait for its thread: one that is away for longer than it works leaves. Which thread makes a piece does
// not matter to its result, so that the bits depend neither on threads nor on how many stay.
template <class Work, class Next>
void in_phases(int threads, Index pieces, Work work, Next next) {
    if (threads <= 1) {
        for (; pieces >= 0; pieces = next())
            for (Index piece = 0; piece < pieces; piece++) work(0, piece);
        return;
    }
    std::atomic<Index> taken{0};
    std::atomic<int> members{0};
    double closed = 0.0;
    auto close = [&]() noexcept {
        pieces = next();
        taken = 0;
        closed = seconds_of(CLOCK_MONOTONIC);
    };
    std::optional<std::barrier<decltype(close)>> meeting;
    auto prepare = [&](int of) {
        members = of;
        meeting.emplace(of, close);
    };
    Team(threads).start(prepare, [&](int me) {
        double worked = 0.0, away = 0.0, released = seconds_of(CLOCK_MONOTONIC);
        while (pieces >= 0) {
            double begun = seconds_of(CLOCK_THREAD_CPUTIME_ID);
            for (Index piece = taken++; piece < pieces; piece = taken++) work(me, piece);
            double took = seconds_of(CLOCK_THREAD_CPUTIME_ID) - begun;
            worked += took;
            away += seconds_of(CLOCK_MONOTONIC) - released - took;
            if (away > worked && leaves(members)) return meeting->arrive_and_drop();
            meeting->arrive_and_wait();
            released = closed;
        }
    });
}

// Sweeps, each of phase after phase, until one changes less than `stop_below`; returns how many were made.
//
// firsts: the first piece of each phase, and the end of the last. `work(sweep, piece)` returns the largest
// change of a piece. Which thread makes a piece does not matter to its result, so that the bits do not
// depend on threads.
template <class Work>
Index repeated_in_phases(
    int threads, const Index* firsts, Index phases, double* changes, Index sweeps, double stop_below, Work work) {
    Index made = 0, phase = 0;
    if (sweeps <= 0) return 0;
    double alone = 0.0;
    std::vector<double> shared(threads > 1 ? threads : 0, 0.0);
    auto pieces_of = [&](Index which) { return which < phases ? firsts[which + 1] - firsts[which] : 0; };
    auto next = [&]() noexcept -> Index {
        if (++phase < phases) return pieces_of(phase);
        phase = 0;
        for (double& found : shared) alone = std::max(alone, std::exchange(found, 0.0));
        double largest = changes[made++] = std::exchange(alone, 0.0);
        return largest < stop_below || made == sweeps ? -1 : pieces_of(0);
    };
    in_phases(threads, pieces_of(0), [&](int me, Index piece) {
        double& found = threads > 1 ? shared[me] : alone;
        found = std::max(found, work(made, firsts[phase] + piece));
    }, next);
    return made;
}

// Sweeps of a single phase.
template <class Work>
Index repeated(int threads, Index pieces, double* changes, Index sweeps, double stop_below, Work work) {
    Index firsts[] = {0, pieces};
    return repeated_in_phases(pieces < 2 ? 1 : threads, firsts, 1, changes, sweeps, stop_below, work);
}

}  // namespace prism_gpu
