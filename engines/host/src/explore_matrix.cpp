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
    std::int32_t column, action;
    double value;
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
    explicit RowMaker(const PgSpace& space)
        : space_(space), words_(space.words), kind_(static_cast<Kind>(space.program.kind)), expander_(space.program) {}

    // Appends the rows of `count` states to a part; the first has the number `number`.
    void block(const Word* states, int count, Index number, Part& part) {
        places_.clear();
        choices_.clear();
        weights_.clear();
        actions_.clear();
        targets_.clear();
        expander_.expand(states, count, [&](const Transition& of) {
            for (int i = 0; i < of.count; i++) {
                if (of.absent != nullptr && of.absent[i]) continue;
                places_.push_back(of.places[i]);
                choices_.push_back(of.choice);
                weights_.push_back(of.weights[i]);
                actions_.push_back(of.action);
                targets_.insert(targets_.end(), of.targets + i * words_, of.targets + (i + 1) * words_);
            }
        });
        look_up();
        sort(count);
        for (int i = 0; i < count; i++) {
            row_.assign(sorted_.begin() + starts_[i], sorted_.begin() + starts_[i + 1]);
            bool deadlock = row_.empty();
            part.deadlocks.push_back(deadlock);
            if (deadlock) row_.push_back({0, {static_cast<std::int32_t>(number + i), -1, 1.0}});
            if (kind_ == MDP)
                choices_of_state(part);
            else
                row_of_state(part, kind_ == DTMC && !deadlock);
        }
    }

   private:
    struct Found {
        std::int32_t choice;
        Entry entry;
    };

    // Finds the numbers of the targets.
    void look_up() {
        Index count = static_cast<Index>(places_.size());
        hashes_.resize(count);
        columns_.resize(count);
        slots_.resize(count);
        for (Index i = 0; i < count; i++) {
            hashes_[i] = hash_of(targets_.data() + i * words_, words_);
            space_.tables[table_of(hashes_[i])].prefetch(hashes_[i]);
        }
        for (Index i = 0; i < count; i++) {
            const Table& table = space_.tables[table_of(hashes_[i])];
            slots_[i] = table.find(targets_.data() + i * words_, hashes_[i]);
            __builtin_prefetch(table.ranks.get() + slots_[i]);
        }
        for (Index i = 0; i < count; i++)
            columns_[i] = static_cast<std::int32_t>(space_.tables[table_of(hashes_[i])].ranks[slots_[i]]);
    }

    // Brings the transitions of each state together, without changing their order.
    void sort(int count) {
        starts_.assign(count + 1, 0);
        for (std::uint16_t place : places_) starts_[place + 1]++;
        for (int i = 0; i < count; i++) starts_[i + 1] += starts_[i];
        next_.assign(starts_.begin(), starts_.end());
        sorted_.resize(places_.size());
        for (Index i = 0; i < static_cast<Index>(places_.size()); i++)
            sorted_[next_[places_[i]]++] = {choices_[i], {columns_[i], actions_[i], weights_[i]}};
    }

    // The sum over choices of the sums of their transitions, in PRISM's order.
    double sum() const {
        double total = 0.0, of_choice = 0.0;
        for (std::size_t i = 0; i < row_.size(); i++) {
            of_choice += row_[i].entry.value;
            if (i + 1 < row_.size() && row_[i + 1].choice == row_[i].choice) continue;
            total += of_choice;
            of_choice = 0.0;
        }
        return total;
    }

    void row_of_state(Part& part, bool scaled) {
        if (scaled) {
            double factor = 1.0 / sum();
            for (Found& found : row_) found.entry.value *= factor;
        }
        std::size_t begin = part.entries.size();
        merge(part.entries, row_.data(), row_.data() + row_.size());
        part.lengths.push_back(static_cast<std::int32_t>(part.entries.size() - begin));
    }

    void choices_of_state(Part& part) {
        std::size_t first_row = part.lengths.size(), first_entry = part.entries.size();
        for (std::size_t i = 0, next = 0; i < row_.size(); i = next) {
            while (next < row_.size() && row_[next].choice == row_[i].choice) next++;
            std::size_t begin = part.entries.size();
            merge(part.entries, row_.data() + i, row_.data() + next);
            std::sort(part.entries.begin() + begin, part.entries.end(),
                      [](const Entry& a, const Entry& b) { return a.column < b.column; });
            std::int32_t action = row_[i].entry.action;
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

    const PgSpace& space_;
    int words_;
    Kind kind_;
    Expander expander_;
    std::vector<std::uint16_t> places_;
    std::vector<std::int32_t> choices_, actions_, columns_;
    std::vector<double> weights_;
    std::vector<Word> targets_, hashes_;
    std::vector<Index> slots_;
    std::vector<std::int32_t> starts_, next_;
    std::vector<Found> sorted_, row_;
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
extern "C" std::int32_t pg_explore_rows(
    void* handle, const std::uint64_t* states, std::int64_t first, std::int64_t last, PgRows* rows) {
    using namespace prism_gpu;
    PgSpace& space = *static_cast<PgSpace*>(handle);
    Index pieces = (last - first + PIECE - 1) / PIECE;
    std::atomic<bool> no_memory{false};
    try {
        std::vector<Part> parts(pieces);
        auto make = [&](Index piece) {
            RowMaker maker(space);
            Index begin = first + piece * PIECE, end = std::min(last, begin + PIECE);
            for (Index at = begin; at < end; at += BLOCK)
                maker.block(states + at * space.words, static_cast<int>(std::min<Index>(BLOCK, end - at)), at,
                            parts[piece]);
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
