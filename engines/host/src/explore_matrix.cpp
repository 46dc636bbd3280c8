// The matrix: the choices of all states in order, evaluated once more.
//
// Source: `explicit.ConstructModel` of PRISM and what it calls. In a chain, transitions under the same
// action to the same state are one, in the order in which they first come up (`DTMCSimple`); in an MDP
// they are sorted, and a choice that equals an earlier one of the same state and action is left out
// (`MDPSimple.addActionLabelledChoice`, `MDPSparse`).
#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <new>
#include <unordered_map>
#include <vector>

#include "explore_space.hpp"
#include "team.hpp"

// `HostRows` of engines/host/exploring/explorer.py: rows are written behind those that are there.
struct PgRows {
    std::int64_t rows, entries;   // how many there are
    std::int64_t* row_offsets;    // the first is there
    std::int64_t* group_offsets;  // of an MDP, as of rows; else null
    std::int32_t* columns;
    double* values;
    std::int32_t* actions;        // of each row of an MDP, of each entry of a chain; -1 for none; null if not wanted
    std::uint8_t* deadlocks;      // of each state
};

namespace prism_gpu {

namespace {

enum Kind : std::int32_t { DTMC, CTMC, MDP };

constexpr double SAME_VALUE = 1e-12;  // PRISM's `epsilonDouble`
constexpr Index PIECE = 8 * BLOCK;

struct Entry {
    double value;
    std::int32_t column, action;
};

// As `PrismUtils.doublesAreEqual` has it, for numbers that are not 0.
bool same_value(double a, double b) {
    if (std::isinf(a) || std::isinf(b)) return a == b;
    return std::fabs((a - b) / a) < SAME_VALUE;
}

// The rows of a piece.
struct Part {
    std::vector<Entry> entries;
    std::vector<std::int32_t> lengths;       // of rows
    std::vector<std::int32_t> row_actions;   // of an MDP
    std::vector<std::int32_t> group_lengths; // of an MDP
    std::vector<std::uint8_t> deadlocks;
};

// Makes the rows of states, a block after the other; each thread has one of its own.
class RowMaker {
   public:
    // states: all of them, in order. unexplored: those that get a transition to themselves alone; null for
    // none. first: the number of the first whose row is made.
    RowMaker(const PgSpace& space, const Word* states, const std::uint8_t* unexplored, Index count, Index first)
        : states_(states),
          unexplored_(unexplored),
          count_(count),
          words_(space.words),
          kind_(static_cast<Kind>(space.program.kind)),
          expander_(space.program, space.compiled),
          hints_(HINTS, first) {}

    // Appends the rows of `count` states to a part; the first has the number `number`.
    void block(Index number, int count, Part& part) {
        found_.clear();
        int explored = gather(number, count);
        expander_.expand(gathered_, explored, [&](const Transition& of) {
            Index& at = hints_[of.key % HINTS];
            for (int i = 0; i < of.count; i++) {
                if (of.absent != nullptr && of.absent[i]) continue;
                at = find(of.targets + i * words_, at);
                found_.push_back(
                    {{of.weights[i], static_cast<std::int32_t>(at), of.action}, of.choice, places_[of.places[i]]});
            }
        });
        sort(count);
        for (int i = 0; i < count; i++) {
            bool alone = starts_[i] == starts_[i + 1];
            Found itself{{1.0, static_cast<std::int32_t>(number + i), -1}, 0, 0};
            first_ = alone ? &itself : sorted_.data() + starts_[i];
            last_ = alone ? first_ + 1 : sorted_.data() + starts_[i + 1];
            part.deadlocks.push_back(alone && !is_unexplored(number + i));
            if (kind_ == MDP)
                choices_of_state(part);
            else
                row_of_state(part, kind_ == DTMC && !alone);
        }
    }

   private:
    static constexpr Index HINTS = 1 << 10;

    struct Found {
        Entry entry;
        std::int32_t choice, place;
    };

    bool is_unexplored(Index number) const { return unexplored_ != nullptr && unexplored_[number]; }

    // Brings the states of a block together whose choices are looked at; returns how many they are.
    int gather(Index number, int count) {
        int explored = 0;
        for (int i = 0; i < count; i++)
            if (!is_unexplored(number + i)) places_[explored++] = i;
        gathered_ = states_ + number * words_;
        if (explored == count) return count;
        copied_.resize(Index{BLOCK} * words_);
        for (int i = 0; i < explored; i++)
            std::copy_n(states_ + (number + places_[i]) * words_, words_, copied_.data() + i * words_);
        gathered_ = copied_.data();
        return explored;
    }

    // Returns the number of a state, looked for around `hint`: what one command leads to from states in
    // order is mostly in order itself, and close to what it led to from the state before.
    Index find(const Word* state, Index hint) const {
        auto at = [&](Index number) { return states_ + number * words_; };
        Index low = hint, high = hint, step = 1;  // below `low` all states are less, `high` is not
        if (before(at(hint), state, words_)) {
            low = hint + 1;
            for (high = low; high < count_ && before(at(high), state, words_); high += step, step *= 2) low = high + 1;
            high = std::min(high, count_);
        } else {
            for (low = hint; low > 0 && !before(at(low - 1), state, words_); step *= 2) {
                high = low - 1;
                low = std::max<Index>(low - step, 0);
                if (!before(at(low), state, words_)) continue;
                low++;
                break;
            }
        }
        while (low < high) {
            Index middle = (low + high) / 2;
            if (before(at(middle), state, words_))
                low = middle + 1;
            else
                high = middle;
        }
        return low;
    }

    // Brings the transitions of each state together, without changing their order.
    void sort(int count) {
        starts_.assign(count + 1, 0);
        for (const Found& found : found_) starts_[found.place + 1]++;
        for (int i = 0; i < count; i++) starts_[i + 1] += starts_[i];
        next_.assign(starts_.begin(), starts_.end());
        sorted_.resize(found_.size());
        for (const Found& found : found_) sorted_[next_[found.place]++] = found;
    }

    // The sum over choices of the sums of their transitions, in PRISM's order.
    double sum() const {
        double total = 0.0, of_choice = 0.0;
        for (const Found* found = first_; found < last_; found++) {
            of_choice += found->entry.value;
            if (found + 1 < last_ && found[1].choice == found->choice) continue;
            total += of_choice;
            of_choice = 0.0;
        }
        return total;
    }

    void row_of_state(Part& part, bool scaled) {
        if (scaled) {
            double factor = 1.0 / sum();
            for (Found* found = first_; found < last_; found++) found->entry.value *= factor;
        }
        std::size_t begin = part.entries.size();
        merge(part.entries, first_, last_);
        part.lengths.push_back(static_cast<std::int32_t>(part.entries.size() - begin));
    }

    void choices_of_state(Part& part) {
        std::size_t first_row = part.lengths.size(), first_entry = part.entries.size();
        for (const Found *found = first_, *next = first_; found < last_; found = next) {
            while (next < last_ && next->choice == found->choice) next++;
            std::size_t begin = part.entries.size();
            merge(part.entries, found, next);
            std::sort(part.entries.begin() + begin, part.entries.end(),
                      [](const Entry& a, const Entry& b) { return a.column < b.column; });
            std::int32_t action = found->entry.action;
            if (is_there(part, first_row, first_entry, begin, action)) {
                part.entries.resize(begin);
                continue;
            }
            part.lengths.push_back(static_cast<std::int32_t>(part.entries.size() - begin));
            part.row_actions.push_back(action);
        }
        part.group_lengths.push_back(static_cast<std::int32_t>(part.lengths.size() - first_row));
    }

    // Whether the entries from `begin` on equal those of an earlier row of the state with the same action.
    static bool is_there(const Part& part, std::size_t row, std::size_t entry, std::size_t begin, std::int32_t action) {
        auto same = [](const Entry& a, const Entry& b) { return a.column == b.column && same_value(a.value, b.value); };
        std::size_t length = part.entries.size() - begin;
        for (; row < part.lengths.size(); entry += part.lengths[row++]) {
            if (part.row_actions[row] != action || static_cast<std::size_t>(part.lengths[row]) != length) continue;
            auto first = part.entries.begin();
            if (std::equal(first + begin, part.entries.end(), first + entry, same)) return true;
        }
        return false;
    }

    // Appends transitions, those to the same state under the same action added up.
    void merge(std::vector<Entry>& entries, const Found* first, const Found* last) {
        constexpr std::ptrdiff_t FEW = 48;
        std::size_t begin = entries.size();
        bool many = last - first > FEW;
        if (many) known_.clear();
        for (; first < last; first++) {
            const Entry& entry = first->entry;
            if (entry.value == 0.0) continue;  // a product of weights may be too small for a double
            std::size_t place = begin;
            if (many) {
                std::uint64_t key = std::uint64_t{static_cast<std::uint32_t>(entry.action)} << 32 |
                                    static_cast<std::uint32_t>(entry.column);
                place = known_.try_emplace(key, entries.size()).first->second;
            } else {
                while (place < entries.size() &&
                       (entries[place].column != entry.column || entries[place].action != entry.action))
                    place++;
            }
            if (place < entries.size())
                entries[place].value += entry.value;
            else
                entries.push_back(entry);
        }
    }

    const Word* states_;
    const std::uint8_t* unexplored_;
    Index count_;
    int words_;
    Kind kind_;
    const Word* gathered_ = nullptr;  // the states of a block whose choices are looked at,
    std::vector<Word> copied_;
    int places_[BLOCK];               // and where in the block each lies
    StateExpander expander_;
    std::vector<Index> hints_;  // where a transition led to lately
    std::vector<Found> found_, sorted_;
    Found* first_ = nullptr;  // the transitions of the state at hand
    Found* last_ = nullptr;
    std::vector<std::int32_t> starts_, next_;
    std::unordered_map<std::uint64_t, std::size_t> known_;
};

// Where the rows of a piece begin.
struct Place {
    Index state, row, entry;
};

void write(const Part& part, const Place& at, const PgRows& rows) {
    Index end = at.entry, row = at.row, state = at.state;
    for (std::int32_t length : part.lengths) rows.row_offsets[++row] = end += length;
    row = at.row;
    for (std::int32_t length : part.group_lengths) rows.group_offsets[++state] = row += length;
    std::copy(part.deadlocks.begin(), part.deadlocks.end(), rows.deadlocks + at.state);
    if (rows.actions != nullptr) std::copy(part.row_actions.begin(), part.row_actions.end(), rows.actions + at.row);
    bool by_entry = rows.actions != nullptr && part.group_lengths.empty();
    Index entry = at.entry;
    for (const Entry& found : part.entries) {
        rows.columns[entry] = found.column;
        rows.values[entry] = found.value;
        if (by_entry) rows.actions[entry] = found.action;
        entry++;
    }
}

}  // namespace

}  // namespace prism_gpu

// Writes the rows of the states from `first` to before `last`.
//
// unexplored: the states that get a transition to themselves alone; null for none.
extern "C" std::int32_t pg_explore_rows(
    void* handle, const std::uint64_t* states, const std::uint8_t* unexplored, std::int64_t count, std::int64_t first,
    std::int64_t last, PgRows* rows) {
    using namespace prism_gpu;
    PgSpace& space = *static_cast<PgSpace*>(handle);
    Index pieces = (last - first + PIECE - 1) / PIECE;
    std::atomic<bool> no_memory{false};
    try {
        std::vector<Part> parts(pieces);
        auto make = [&](Index piece) {
            Index begin = first + piece * PIECE, end = std::min(last, begin + PIECE);
            RowMaker maker(space, states, unexplored, count, begin);
            for (Index at = begin; at < end; at += BLOCK)
                maker.block(at, static_cast<int>(std::min<Index>(BLOCK, end - at)), parts[piece]);
        };
        Team(space.threads).share(pieces, [&](Index piece) {
            try {
                make(piece);
            } catch (const std::bad_alloc&) {
                no_memory = true;
            }
        });
        if (no_memory) return NO_MEMORY;
        std::vector<Place> places{{first, rows->rows, rows->entries}};
        for (Index piece = 0; piece < pieces; piece++)
            places.push_back({first + (piece + 1) * PIECE,
                              places[piece].row + static_cast<Index>(parts[piece].lengths.size()),
                              places[piece].entry + static_cast<Index>(parts[piece].entries.size())});
        Team(space.threads).share(pieces, [&](Index piece) { write(parts[piece], places[piece], *rows); });
        rows->rows = places[pieces].row;
        rows->entries = places[pieces].entry;
    } catch (const std::bad_alloc&) {
        return NO_MEMORY;
    }
    return DONE;
}
