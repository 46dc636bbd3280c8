// How the states of a chain are joined to aggregates: pairs along the strongest flows, twice.
#include <algorithm>
#include <cstdint>
#include <numeric>

#include "flows.hpp"
#include "team.hpp"

using prism_gpu::Index;
using prism_gpu::Team;

constexpr std::int32_t NONE = -1;

// `HostAggregates` of engines/host/aggregates.py.
struct PgAggregates {
    std::int64_t count, width;
    const std::int32_t* members;    // `width` for each aggregate, NONE behind the last
    const std::int32_t* aggregate;  // of each state

    // Calls `see(row)` for each member.
    template <class See>
    void each_member(Index of, See see) const {
        for (Index place = of * width; place < (of + 1) * width && members[place] != NONE; place++)
            see(static_cast<Index>(members[place]));
    }
};

namespace {

// On which side an aggregate is in a round; a hash, because neighbours must part in some round.
bool waits(Index aggregate, std::int32_t round) {
    std::uint32_t bits =
        static_cast<std::uint32_t>(aggregate) * 2654435761u + static_cast<std::uint32_t>(round) * 2246822519u;
    bits = (bits ^ (bits >> 15)) * 2246822519u;
    bits = (bits ^ (bits >> 13)) * 3266489917u;
    return (bits >> 16) & 1;
}

struct Wish {
    std::int32_t source;
    float strength;
};

// The strongest neighbour on the other side; NONE where it is tied less than `enough` times as strongly as
// any, members included: no correction could move mass between the two.
Wish wish_of(
    const PgFlows& flows, const PgAggregates& joined, const std::int32_t* partner, Index target, std::int32_t round,
    double enough) {
    float best = 0.0f, strongest = 0.0f;
    std::int32_t chosen = NONE;
    joined.each_member(target, [&](Index row) {
        for (Index entry = flows.offsets[row]; entry < flows.offsets[row + 1]; entry++) {
            std::int32_t column = flows.columns[entry], source = joined.aggregate[column];
            double value = flows.values[entry];
            // How large a share it is of what leaves the one, and of what passes the other.
            auto strength = static_cast<float>(value / flows.out[column] + value / flows.out[row]);
            strongest = std::max(strongest, strength);
            bool free = source != target && partner[source] == NONE && waits(source, round);
            if (free && strength > best) {
                best = strength;
                chosen = source;
            }
        }
    });
    bool will_do = static_cast<double>(best) >= enough * static_cast<double>(strongest);
    return {will_do ? chosen : NONE, best};
}

// Each aggregate that is wanted accepts the strongest that wants it, of equal ones the last.
void accept(
    Index count, const std::int32_t* wanted, const float* strengths, std::int32_t* chosen, std::int32_t* partner) {
    std::fill(chosen, chosen + count, NONE);
    for (Index target = 0; target < count; target++) {
        if (wanted[target] == NONE) continue;
        std::int32_t& best = chosen[wanted[target]];
        if (best == NONE || strengths[target] >= strengths[best]) best = static_cast<std::int32_t>(target);
    }
    for (Index source = 0; source < count; source++) {
        if (chosen[source] == NONE) continue;
        partner[source] = chosen[source];
        partner[chosen[source]] = static_cast<std::int32_t>(source);
    }
}

}  // namespace

// Makes a round in which aggregates without a partner find one: those on one side choose among the others.
// wanted, strengths, chosen: room for a number of each aggregate.
extern "C" void pg_find_partners(
    const PgFlows* flows, const PgAggregates* joined, std::int32_t round, double enough, const std::int64_t* bounds,
    std::int64_t pieces, std::int32_t threads, std::int32_t* wanted, float* strengths, std::int32_t* chosen,
    std::int32_t* partner) {
    Team(threads).share(pieces, [&](Index piece) {
        for (Index target = bounds[piece]; target < bounds[piece + 1]; target++) {
            Wish wish{NONE, 0.0f};
            if (partner[target] == NONE && !waits(target, round))
                wish = wish_of(*flows, *joined, partner, target, round, enough);
            wanted[target] = wish.source;
            strengths[target] = wish.strength;
        }
    });
    accept(joined->count, wanted, strengths, chosen, partner);
}

// together: the members of each pair and of each aggregate without a partner, twice as many places.
extern "C" void pg_join_partners(
    const PgAggregates* joined, const std::int32_t* partner, std::int32_t* together, std::int32_t* aggregate) {
    std::int32_t number = 0;
    for (Index one = 0; one < joined->count; one++) {
        if (partner[one] != NONE && partner[one] < one) continue;
        std::int32_t* place = together + number * 2 * joined->width;
        std::int32_t* behind = place + 2 * joined->width;
        auto take = [&](Index state) {
            *place++ = static_cast<std::int32_t>(state);
            aggregate[state] = number;
        };
        joined->each_member(one, take);
        if (partner[one] != NONE) joined->each_member(partner[one], take);
        std::fill(place, behind, NONE);
        number++;
    }
}

// Finds the entries of the chain of aggregates, those of a row in the order in which its members have them;
// returns how many there are.
//
// seen_at: room for a number of each aggregate. adds_to: which of them each entry of the flows adds to, NONE
// within an aggregate.
extern "C" std::int64_t pg_join_entries(
    const PgFlows* flows, const PgAggregates* joined, std::int32_t* seen_at, std::int32_t* offsets,
    std::int32_t* columns, std::int32_t* adds_to) {
    std::fill(seen_at, seen_at + joined->count, NONE);
    std::int32_t total = 0;
    offsets[0] = 0;
    for (Index target = 0; target < joined->count; target++) {
        const std::int32_t begin = total;
        joined->each_member(target, [&](Index row) {
            for (Index entry = flows->offsets[row]; entry < flows->offsets[row + 1]; entry++) {
                std::int32_t source = joined->aggregate[flows->columns[entry]];
                if (source == target) {
                    adds_to[entry] = NONE;
                    continue;
                }
                if (seen_at[source] < begin) {
                    seen_at[source] = total;
                    columns[total++] = source;
                }
                adds_to[entry] = seen_at[source];
            }
        });
        offsets[target + 1] = total;
    }
    return total;
}

// Lists the entries of each column, in their order: those of column j from starts[j] on.
extern "C" void pg_entries_by_column(
    std::int64_t entries, std::int64_t count, const std::int32_t* columns, std::int32_t* starts, std::int32_t* found) {
    std::fill(starts, starts + count + 1, 0);
    for (Index entry = 0; entry < entries; entry++) starts[columns[entry] + 1]++;
    std::partial_sum(starts, starts + count + 1, starts);
    // Each start moves on with what is put behind it, up to where the next one was.
    for (Index entry = 0; entry < entries; entry++)
        found[starts[columns[entry]]++] = static_cast<std::int32_t>(entry);
    std::copy_backward(starts, starts + count, starts + count + 1);
    starts[0] = 0;
}
