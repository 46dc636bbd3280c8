// Threads that share out the pieces of each sweep, and meet after it.
#pragma once

#include <algorithm>
#include <atomic>
#include <barrier>
#include <optional>
#include <system_error>
#include <thread>
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

// Sweeps until one changes less than `stop_below`; returns how many were made.
//
// `work(sweep, piece)` returns the largest change of a piece. Which thread makes a piece does not
// matter to its result, so that the bits do not depend on threads.
template <class Work>
Index repeated(int threads, Index pieces, double* changes, Index sweeps, double stop_below, Work work) {
    if (threads <= 1 || pieces < 2) {
        for (Index sweep = 0; sweep < sweeps; sweep++) {
            double largest = 0.0;
            for (Index piece = 0; piece < pieces; piece++) largest = std::max(largest, work(sweep, piece));
            changes[sweep] = largest;
            if (largest < stop_below) return sweep + 1;
        }
        return sweeps;
    }
    Index made = 0;
    bool stopped = sweeps == 0;
    std::atomic<Index> next{0};
    std::vector<double> found(threads, 0.0);
    auto close = [&]() noexcept {
        changes[made] = *std::max_element(found.begin(), found.end());
        stopped = changes[made] < stop_below || made + 1 == sweeps;
        made++;
        next = 0;
    };
    std::optional<std::barrier<decltype(close)>> meeting;
    Team(threads).start([&](int of) { meeting.emplace(of, close); }, [&](int me) {
        while (!stopped) {
            double largest = 0.0;
            for (Index piece = next++; piece < pieces; piece = next++)
                largest = std::max(largest, work(made, piece));
            found[me] = largest;
            meeting->arrive_and_wait();
        }
    });
    return made;
}

}  // namespace prism_gpu
