// From transitions as files list them to compressed sparse rows, and rewards put beside the transitions.
//
// The keys of a transition are its source, of an MDP its choice among the source's, and its target.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <new>
#include <tuple>
#include <type_traits>
#include <vector>

#include "matrix.hpp"

using prism_gpu::Index;

namespace {

// `RowStatus` of engines/host/assemble.py.
enum Status : Index {
    OK,
    OUT_OF_ORDER,
    BAD_SOURCE,
    BAD_TARGET,
    TOO_MANY_ROWS,
    BAD_CHOICE,
    TWO_ACTIONS,
    DUPLICATE,
    NOT_THERE,
    CHANGED,
    NO_MEMORY,
};

constexpr std::int32_t MERGED = -1, UNSET = -2;

// Calls a generic function with a number of the type that arrays have.
template <class Function>
Index with_width(std::int32_t wide, Function function) {
    return wide ? function(std::int64_t{}) : function(std::int32_t{});
}

// Whether a number is none of those from 0 up to `count`.
bool is_outside(Index number, Index count) {
    return static_cast<std::uint64_t>(number) >= static_cast<std::uint64_t>(count);
}

struct Transition {
    Index source, choice, target;
};

class Keys {
   public:
    Keys(const std::int64_t* keys, Index integers) : keys_(keys), integers_(integers) {}
    bool with_choices() const { return integers_ == 3; }
    Transition operator[](Index entry) const {
        const std::int64_t* key = keys_ + entry * integers_;
        return {key[0], with_choices() ? key[1] : 0, key[integers_ - 1]};
    }

   private:
    const std::int64_t* keys_;
    Index integers_;
};

// The entries of a matrix; codes: the actions of an MDP's rows, or of a chain's entries.
template <class Column>
struct Entries {
    Column* columns;
    double* values;
    std::int32_t* codes;

    // Sets an entry of a row; false where the row has another action.
    bool set(Index slot, Index row, Index target, double value, std::int32_t action, bool with_choices) {
        columns[slot] = static_cast<Column>(target);
        values[slot] = value;
        if (!with_choices) {
            if (action != 0) codes[slot] = action;
        } else if (codes[row] != action) {
            if (codes[row] != UNSET) return false;
            codes[row] = action;
        }
        return true;
    }
};

// Where the next transition goes: behind those of the last state, choice and row.
struct Place {
    std::int64_t state, choice, row, filled;
};

template <class Offset>
struct Counts {
    Offset *groups, *lengths;
    Index states, rows;
};

// The row of a transition that follows those so far, which is counted; its place moves on.
template <class Offset>
Status count_next(const Transition& next, bool with_choices, const Counts<Offset>& counts, Place& place) {
    if (is_outside(next.source, counts.states)) return BAD_SOURCE;
    if (is_outside(next.target, counts.states)) return BAD_TARGET;
    if (next.source < place.state) return OUT_OF_ORDER;
    if (!with_choices) {
        place.row = next.source;
    } else if (next.source != place.state || next.choice != place.choice) {
        Index wanted = next.source != place.state ? 0 : place.choice + 1;
        if (next.choice != wanted) return OUT_OF_ORDER;
        if (place.row + 1 >= counts.rows) return TOO_MANY_ROWS;
        place.row++;
        counts.groups[next.source]++;
        place.choice = next.choice;
    }
    place.state = next.source;
    counts.lengths[place.row]++;
    return OK;
}

// By value, so that the compiler keeps what no array can hold in registers.
template <class Offset, class Column>
Index append(
    Keys keys, const double* values, const std::int32_t* actions, Index count, Counts<Offset> counts,
    Entries<Column> entries, Place& given, std::int64_t& about) {
    Place place = given;
    Index status = OK;
    for (Index entry = 0; entry < count && status == OK; entry++) {
        Transition next = keys[entry];
        status = count_next(next, keys.with_choices(), counts, place);
        if (status == OK) {
            bool fits = entries.set(
                place.filled, place.row, next.target, values[entry], actions[entry], keys.with_choices());
            if (fits) place.filled++;
            else status = TWO_ACTIONS;
        }
        if (status != OK) about = entry;
    }
    given = place;
    return status;
}

// A transition among those of a row.
template <class Column>
struct Item {
    Column column;
    std::int32_t code;
    Index position;
    double value;

    auto key() const { return std::tie(column, code, position); }
};

template <class Offset, class Column>
class Tidier {
   public:
    Tidier(Offset* offsets, Column* columns, double* values, std::int32_t* codes)
        : offsets_(offsets), columns_(columns), values_(values), codes_(codes) {}

    // Tidies a row that began at `begin`; false at a duplicate, whose entry is then `filled`.
    bool tidy(Index row, Index& begin, Index& filled) {
        Index end = offsets_[row + 1], start = filled;
        sort(begin, end);
        for (Index entry = begin; entry < end; entry++) {
            if (values_[entry] == 0.0) continue;
            if (filled > start && columns_[filled - 1] == columns_[entry]) {
                // By actions within a target, so that equal ones are neighbours.
                if (!codes_ || codes_[entry] == codes_[entry - 1]) {
                    filled = entry;
                    return false;
                }
                values_[filled - 1] += values_[entry];
                codes_[filled - 1] = MERGED;
                continue;
            }
            columns_[filled] = columns_[entry];
            values_[filled] = values_[entry];
            if (codes_) codes_[filled] = codes_[entry];
            filled++;
        }
        begin = end;
        offsets_[row + 1] = static_cast<Offset>(filled);
        return true;
    }

   private:
    // By target, then by action, then as they came.
    void sort(Index begin, Index end) {
        if (std::adjacent_find(columns_ + begin, columns_ + end, std::greater_equal<>()) == columns_ + end) return;
        items_.clear();
        for (Index entry = begin; entry < end; entry++)
            items_.push_back({columns_[entry], codes_ ? codes_[entry] : 0, entry, values_[entry]});
        std::sort(items_.begin(), items_.end(), [](const auto& a, const auto& b) { return a.key() < b.key(); });
        for (const auto& item : items_) {
            columns_[begin] = item.column;
            values_[begin] = item.value;
            if (codes_) codes_[begin] = item.code;
            begin++;
        }
    }

    Offset* offsets_;
    Column* columns_;
    double* values_;
    std::int32_t* codes_;
    std::vector<Item<Column>> items_;
};

// The row of a transition; false where its source has no such choice.
template <class Offset>
bool find_row(const Transition& given, const Offset* groups, Index& row) {
    row = given.source;
    if (!groups) return true;
    if (is_outside(given.choice, groups[given.source + 1] - groups[given.source])) return false;
    row = groups[given.source] + given.choice;
    return true;
}

template <class Matrix>
Status add_reward(
    const Matrix& matrix, const Transition& given, const typename Matrix::OffsetType* groups, double reward,
    std::uint8_t* seen, double* rewards) {
    Index row = 0;
    if (!find_row(given, groups, row)) return BAD_CHOICE;
    auto begin = matrix.columns + matrix.begin(row), end = matrix.columns + matrix.end(row);
    auto found = std::lower_bound(begin, end, given.target, [](Index a, Index b) { return a < b; });
    if (found == end || static_cast<Index>(*found) != given.target) return NOT_THERE;
    Index entry = found - matrix.columns;
    if (seen[entry]) return DUPLICATE;
    seen[entry] = 1;
    rewards[entry] = reward;
    return OK;
}

}  // namespace

// In all of these, `about` becomes the number of the transition that a status other than OK is about.

// Appends transitions whose states, and choices, ascend. Choices of states and entries of rows are counted
// in groups (null for a chain) and lengths. codes: an action of each row of an MDP, or of each entry.
extern "C" std::int64_t pg_append_rows(
    const std::int64_t* keys, std::int64_t integers, const double* values, const std::int32_t* actions,
    std::int64_t count, std::int64_t states, std::int64_t rows, void* groups, void* lengths, std::int32_t wide_offsets,
    void* columns, std::int32_t wide_columns, double* entries, std::int32_t* codes, std::int64_t* position,
    std::int64_t* about) {
    Place place{position[0], position[1], position[2], position[3]};
    Index status = with_width(wide_offsets, [&]<class Offset>(Offset) {
        return with_width(wide_columns, [&]<class Column>(Column) {
            Counts<Offset> counts{static_cast<Offset*>(groups), static_cast<Offset*>(lengths), states, rows};
            Entries<Column> room{static_cast<Column*>(columns), entries, codes};
            return append(Keys(keys, integers), values, actions, count, counts, room, place, *about);
        });
    });
    std::int64_t reached[] = {place.state, place.choice, place.row, place.filled};
    std::copy(reached, reached + 4, position);
    return status;
}

// Raises each state's number of choices to the largest choice met plus one.
extern "C" std::int64_t pg_count_rows_of_states(
    const std::int64_t* keys, std::int64_t count, std::int64_t states, std::int64_t choices, void* groups,
    std::int32_t wide, std::int64_t* about) {
    Keys given(keys, 3);
    return with_width(wide, [&]<class Offset>(Offset) -> Index {
        auto sizes = static_cast<Offset*>(groups);
        for (Index entry = 0; entry < count; entry++) {
            *about = entry;
            auto [source, choice, target] = given[entry];
            if (is_outside(source, states)) return BAD_SOURCE;
            if (is_outside(choice, choices)) return BAD_CHOICE;
            if (choice >= sizes[source]) sizes[source] = static_cast<Offset>(choice + 1);
        }
        return OK;
    });
}

// Counts the transitions of each row, of transitions in any order. groups: null for a chain. CHANGED:
// a choice that pg_count_rows_of_states did not meet.
extern "C" std::int64_t pg_count_rows(
    const std::int64_t* keys, std::int64_t integers, std::int64_t count, std::int64_t states,
    const std::int64_t* groups, void* lengths, std::int32_t wide, std::int64_t* about) {
    Keys given(keys, integers);
    return with_width(wide, [&]<class Offset>(Offset) -> Index {
        for (Index entry = 0; entry < count; entry++) {
            *about = entry;
            Transition next = given[entry];
            if (is_outside(next.source, states)) return BAD_SOURCE;
            if (is_outside(next.target, states)) return BAD_TARGET;
            Index row = 0;
            if (!find_row(next, groups, row)) return CHANGED;
            static_cast<Offset*>(lengths)[row]++;
        }
        return OK;
    });
}

// Puts transitions in any order where their rows have room: `next` holds the place of each row's next
// entry, of `room` in all. CHANGED: they are others than pg_count_rows met.
extern "C" std::int64_t pg_place_rows(
    const std::int64_t* keys, std::int64_t integers, const double* values, const std::int32_t* actions,
    std::int64_t count, std::int64_t states, const std::int64_t* groups, std::int64_t* next, std::int64_t room,
    void* columns, std::int32_t wide_columns, double* entries, std::int32_t* codes, std::int64_t* about) {
    return with_width(wide_columns, [&]<class Column>(Column) -> Index {
        Keys given(keys, integers);
        Entries<Column> placed{static_cast<Column*>(columns), entries, codes};
        for (Index entry = 0; entry < count; entry++) {
            *about = entry;
            Transition transition = given[entry];
            Index row = 0;
            if (is_outside(transition.source, states) || is_outside(transition.target, states)) return CHANGED;
            if (!find_row(transition, groups, row) || next[row] >= room) return CHANGED;
            Index slot = next[row]++;
            if (!placed.set(slot, row, transition.target, values[entry], actions[entry], given.with_choices()))
                return TWO_ACTIONS;
        }
        return OK;
    });
}

// Sorts each of some rows by target, drops zeros, and merges parallel transitions of different actions,
// which get the action MERGED. Arrays are rewritten from the front. codes: null where there are none.
// position: in and out, where the first row began and how much is filled. about: the row of a duplicate,
// and its target.
extern "C" std::int64_t pg_tidy_rows(
    std::int64_t first, std::int64_t behind, void* offsets, std::int32_t wide_offsets, void* columns,
    std::int32_t wide_columns, double* values, std::int32_t* codes, std::int64_t* position,
    std::int64_t* about) try {
    return with_width(wide_offsets, [&]<class Offset>(Offset) {
        return with_width(wide_columns, [&]<class Column>(Column) -> Index {
            auto targets = static_cast<Column*>(columns);
            Tidier<Offset, Column> tidier(static_cast<Offset*>(offsets), targets, values, codes);
            for (Index row = first; row < behind; row++) {
                if (tidier.tidy(row, position[0], position[1])) continue;
                about[0] = row;
                about[1] = targets[position[1]];
                return DUPLICATE;
            }
            return OK;
        });
    });
} catch (const std::bad_alloc&) {
    return NO_MEMORY;
}

// Puts rewards of transitions beside their entries, columns ascending in each row. groups: null for a chain.
extern "C" std::int64_t pg_add_rewards(
    const PgMatrix* matrix, const void* groups, const std::int64_t* keys, std::int64_t integers,
    const double* values, std::int64_t count, std::int64_t states, std::uint8_t* seen, double* rewards,
    std::int64_t* about) {
    Keys given(keys, integers);
    return prism_gpu::with_types(*matrix, [&](const auto& typed) -> Index {
        using Offset = typename std::decay_t<decltype(typed)>::OffsetType;
        for (Index reward = 0; reward < count; reward++) {
            *about = reward;
            Transition transition = given[reward];
            if (is_outside(transition.source, states)) return BAD_SOURCE;
            Status added = add_reward(
                typed, transition, static_cast<const Offset*>(groups), values[reward], seen, rewards);
            if (added != OK) return added;
        }
        return OK;
    });
}

// Adds to `sums` what each row's entries earn: the sum of entry times reward, of rewards other than 0.
extern "C" void pg_add_earned(const PgMatrix* matrix, const double* rewards, double* sums) {
    prism_gpu::with_types(*matrix, [&](const auto& typed) {
        for (Index row = 0; row < typed.rows; row++)
            for (Index entry = typed.begin(row); entry < typed.end(row); entry++)
                if (rewards[entry] != 0.0) sums[row] += typed.value(entry) * rewards[entry];
    });
}

// The sum of entry times reward of each row; where all of a row have one reward, that.
extern "C" void pg_rewards_of_rows(const PgMatrix* matrix, const double* rewards, double* earned) {
    prism_gpu::with_types(*matrix, [&](const auto& typed) {
        for (Index row = 0; row < typed.rows; row++) {
            Index begin = typed.begin(row), end = typed.end(row);
            double first = begin < end ? rewards[begin] : 0.0, total = 0.0;
            bool same = true;
            for (Index entry = begin; entry < end; entry++) {
                same = same && rewards[entry] == first;
                total += typed.value(entry) * rewards[entry];
            }
            earned[row] = same ? first : total;
        }
    });
}
