// What is known of a program's states while they are searched and when all are found.
#pragma once

#include <memory>
#include <vector>

#include "explore_compiled.hpp"
#include "explore_program.hpp"
#include "explore_table.hpp"

// What `pg_explore_start` makes.
struct PgSpace {
    PgSpace(const PgProgram& of, int with_threads) : program(of), words(of.code.words), threads(with_threads) {}

    PgProgram program;
    int words, threads;
    prism_gpu::Compiled compiled{};
    prism_gpu::Budget budget{};
    prism_gpu::Table tables[prism_gpu::TABLES];
    // States whose choices are looked at now; those from `at` on have not been yet. How many have been in all.
    std::vector<prism_gpu::Word> frontier;
    prism_gpu::Index at = 0, looked_at = 0;
    // States met for the first time meanwhile, by table.
    std::vector<prism_gpu::Word> fresh[prism_gpu::TABLES];
    std::vector<prism_gpu::Word> fault;  // a state with a fault, or nothing
    std::atomic<prism_gpu::Index> transitions{0}, choices{0};  // of all states looked at, at the most
    std::atomic<prism_gpu::Index> crowding{0};  // transitions beyond CROWD a state, by blocks of states

    prism_gpu::Index count() const {
        prism_gpu::Index total = 0;
        for (const prism_gpu::Table& table : tables) total += table.count();
        return total;
    }
};

namespace prism_gpu {

// More transitions a state than this are many: what makes them is often small as a diagram.
constexpr Index CROWD = 64;

enum Status : std::int32_t { DONE, MORE, FAULT, NO_MEMORY };

}  // namespace prism_gpu
