// Maximal end components, by splitting a partition of the states.
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "edges.hpp"

using prism_gpu::Graph;
using prism_gpu::Index;
using prism_gpu::APART;
using prism_gpu::room;
using prism_gpu::Room;
using prism_gpu::WANTED;

namespace {

using Mask = std::uint8_t;

// A block is split into its strong components, the rows that may leave them are lost, and only components
// that lost any are looked at again (de Alfaro 1997, section 3.4). Before all of such a component is
// searched, small sets that cannot be left any more are split off: each holds a state that lost a row, and
// is found from there at the cost of its own size. Without that, nested rings that break one by one would
// take quadratic time (the idea is the lock-step search of Chatterjee and Henzinger 2011; here budgets that
// grow take turns).
template <class Offset, class Column>
class EndComponents {
   public:
    // usable: the rows that may be used, and in the end those of end components; block: the component of
    // each state or -1, numbered anyhow.
    EndComponents(const Graph<Offset, Column>& graph, const Mask* restrict, Mask* usable, Column* block, Index budget)
        : graph_(graph), usable_(usable), block_(block), first_budget_(budget), order_(room<Column>(graph.states)),
          place_(room<Column>(graph.states)), begin_(room<Column>(graph.states + 1)),
          end_(room<Column>(graph.states + 1)), remaining_(room<Column>(graph.states)) {
        for (Index state = 0; state < graph.states; state++) block[state] = restrict[state] ? 0 : -1;
    }

    // Splits until each block is an end component or empty; returns how many blocks there are.
    Index refine() {
        keep_staying();
        fill_block();
        if (size(0) == 0) return blocks_;
        Index count = split_all();
        blocks_ = std::max<Index>(count, 1);
        if (count > 1) {
            lost_.clear();
            lose_in_each(0, 1, count);
            while (!pending_.empty()) {
                Pending next = pending_.back();
                pending_.pop_back();
                split(next);
            }
        }
        return blocks_;
    }

   private:
    // A block that is to be split. The rows that it lost are the end of `lost_` from `first_lost` to
    // `last_lost`; what lies behind belongs to blocks that came later, and is done with.
    struct Pending {
        Index block, first_lost, last_lost;
    };

    Index size(Index own) const { return end_[own] - begin_[own]; }

    // Lists the states of block 0.
    void fill_block() {
        Index size = 0;
        for (Index state = 0; state < graph_.states; state++) {
            if (block_[state] != 0) continue;
            place_[state] = static_cast<Column>(size);
            order_[size++] = static_cast<Column>(state);
        }
        begin_[0] = 0;
        end_[0] = static_cast<Column>(size);
    }

    // Keeps in block 0, which is not listed yet, the states that have usable rows that stay in it, and these rows.
    void keep_staying() {
        bool all = std::find(block_, block_ + graph_.states, Column(-1)) == block_ + graph_.states;
        for (Index state = 0; state < graph_.states; state++) {
            bool inside = block_[state] == 0;
            Index remaining = 0;
            for (Index row = graph_.first_row(state); row < graph_.first_row(state + 1); row++) {
                // A row without successors is no choice.
                if (!inside || graph_.offsets[row] == graph_.offsets[row + 1] || (!all && leaves(row, 0)))
                    usable_[row] = 0;
                remaining += usable_[row];
            }
            remaining_[state] = static_cast<Column>(remaining);
            if (inside && remaining == 0) removed_.push_back(static_cast<Column>(state));
        }
        while (!removed_.empty()) {
            Index state = removed_.back();
            removed_.pop_back();
            block_[state] = -1;
            for (Index entry = graph_.into_offsets[state]; entry < graph_.into_offsets[state + 1]; entry++) {
                Index row = graph_.into_rows[entry];
                if (!usable_[row]) continue;
                usable_[row] = 0;
                Index before = graph_.owner(row);
                if (--remaining_[before] == 0) removed_.push_back(static_cast<Column>(before));
            }
        }
    }

    bool leaves(Index row, Index own) const {
        for (Index entry = graph_.offsets[row]; entry < static_cast<Index>(graph_.offsets[row + 1]); entry++)
            if (block_[graph_.columns[entry]] != static_cast<Column>(own)) return true;
        return false;
    }

    void lose(Index row) {
        Index state = graph_.owner(row);
        usable_[row] = 0;
        lost_.push_back(static_cast<Column>(row));
        if (--remaining_[state] == 0) removed_.push_back(static_cast<Column>(state));
    }

    // Moves a state behind the end of its block.
    void detach(Index state) {
        Column last = --end_[block_[state]], at = place_[state], other = order_[last];
        order_[at] = other;
        place_[other] = at;
        order_[last] = static_cast<Column>(state);
        place_[state] = last;
    }

    // Loses the rows of a block that may enter a state.
    void lose_into(Index state, Index own) {
        for (Index entry = graph_.into_offsets[state]; entry < graph_.into_offsets[state + 1]; entry++) {
            Index row = graph_.into_rows[entry];
            if (usable_[row] && block_[graph_.owner(row)] == static_cast<Column>(own)) lose(row);
        }
    }

    // Removes from a block the states that have no row left, and whatever is forced into them.
    //
    // Rows of other blocks that may enter a removed state are lost when their own block is looked at.
    void remove_states(Index own) {
        while (!removed_.empty()) {
            Index state = removed_.back();
            removed_.pop_back();
            detach(state);
            block_[state] = -1;
            lose_into(state, own);
        }
    }

    // Splits block 0, all that there is, into its strong components, by the faster search.
    Index split_all() {
        Index states = graph_.states;
        auto labels = room<Column>(states);
        for (Index state = 0; state < states; state++) labels[state] = block_[state] == 0 ? WANTED<Column> : APART;
        Index count = label_kept_edges(labels.get());
        if (count < 2) return count;
        std::fill_n(end_.get(), count, Column(0));
        for (Index state = 0; state < states; state++)
            if (labels[state] >= 0) end_[labels[state]]++;
        Column first = 0;
        for (Index name = 0; name < count; name++) {
            begin_[name] = first;
            first += end_[name];
            end_[name] = begin_[name];
        }
        for (Index state = 0; state < states; state++)
            if (labels[state] >= 0) put(state, labels[state]);
        return count;
    }

    // Puts a state at the end of a block.
    void put(Index state, Index name) {
        Column at = end_[name]++;
        order_[at] = static_cast<Column>(state);
        place_[state] = at;
        block_[state] = static_cast<Column>(name);
    }

    Index label_kept_edges(Column* labels) const {
        Index states = graph_.states;
        if (std::all_of(usable_, usable_ + graph_.rows, [](Mask one) { return one != 0; })) {
            prism_gpu::StateStarts<Offset, Column> starts(graph_);
            return prism_gpu::label_components(states, starts.first, graph_.columns, labels);
        }
        auto starts = room<Offset>(states + 1);
        auto columns = room<Column>(graph_.offsets[graph_.rows]);
        Offset kept = 0;
        for (Index state = 0; state < states; state++) {
            starts[state] = kept;
            for (Index row = graph_.first_row(state); row < graph_.first_row(state + 1); row++) {
                if (!usable_[row]) continue;
                for (Index entry = graph_.offsets[row]; entry < static_cast<Index>(graph_.offsets[row + 1]); entry++)
                    columns[kept++] = graph_.columns[entry];
            }
        }
        starts[states] = kept;
        return prism_gpu::label_components(states, starts.get(), columns.get(), labels);
    }

    // Loses the rows that may leave their block, and what that removes.
    void lose_leaving(Index own) {
        for (Index at = begin_[own]; at < static_cast<Index>(end_[own]); at++) {
            Index state = order_[at];
            for (Index row = graph_.first_row(state); row < graph_.first_row(state + 1); row++)
                if (usable_[row] && leaves(row, own)) lose(row);
        }
        remove_states(own);
    }

    // Does so for the parts into which a block was split: itself, and those from `next` on, `count` in all.
    // Those of several states that lost any rows are pending from then on.
    void lose_in_each(Index own, Index next, Index count) {
        for (Index part = 0; part < count; part++) {
            Index name = part == 0 ? own : next + part - 1, before = static_cast<Index>(lost_.size());
            lose_leaving(name);
            Index behind = static_cast<Index>(lost_.size());
            if (behind > before && size(name) > 1)
                pending_.push_back({name, before, behind});
            else
                lost_.resize(before);
        }
    }

    // Collects in `found_` what a state reaches by usable rows; whether it is within the budget.
    bool collect_closed(Index start, Index budget) {
        if (!marks_) marks_ = std::make_unique<Index[]>(graph_.states);
        mark_++;
        found_.assign(1, static_cast<Column>(start));
        marks_[start] = mark_;
        for (std::size_t at = 0; at < found_.size(); at++) {
            Index state = found_[at];
            for (Index row = graph_.first_row(state); row < graph_.first_row(state + 1); row++) {
                if (!usable_[row]) continue;
                for (Index entry = graph_.offsets[row]; entry < static_cast<Index>(graph_.offsets[row + 1]); entry++) {
                    Column after = graph_.columns[entry];
                    if (marks_[after] == mark_) continue;
                    if (static_cast<Index>(found_.size()) == budget) return false;
                    marks_[after] = mark_;
                    found_.push_back(after);
                }
            }
        }
        return true;
    }

    // Makes the closed set in `found_` a block apart from its own, which loses the rows that may enter it.
    void split_closed(Index own) {
        Index name = blocks_++;
        for (Column state : found_) {
            detach(state);
            block_[state] = static_cast<Column>(name);
        }
        begin_[name] = end_[own];
        end_[name] = static_cast<Column>(end_[own] + found_.size());
        for (Column state : found_) lose_into(state, own);
        remove_states(own);
        if (found_.size() > 1) {
            Index behind = static_cast<Index>(lost_.size());
            pending_.push_back({name, behind, behind});
        }
    }

    void split(const Pending& pending) {
        Index own = pending.block, first = pending.first_lost;
        // Those from `first` to `tried` did not find a small set within the budget, those from `at` on have
        // not been asked.
        Index at = first, tried = first, budget = first_budget_;
        lost_.resize(pending.last_lost);
        while (true) {
            if (at == static_cast<Index>(lost_.size())) {
                lost_.resize(tried);
                at = tried = first;
                budget *= 4;
                if (lost_.size() == static_cast<std::size_t>(first)) break;
            }
            Index candidates = tried - first + static_cast<Index>(lost_.size()) - at;
            // A set within the budget is smaller than the block.
            if (candidates * budget >= size(own)) break;
            Index row = lost_[at++], state = graph_.owner(row);
            if (block_[state] != static_cast<Column>(own)) continue;
            if (!collect_closed(state, budget)) {
                lost_[tried++] = static_cast<Column>(row);
                continue;
            }
            split_closed(own);
            budget = first_budget_;
        }
        split_by_components(own, first);
    }

    // Splits a block into its strong components, which lose the rows that may leave them.
    void split_by_components(Index own, Index first_lost) {
        lost_.resize(first_lost);
        if (size(own) < 2) return;
        if (!search_) {
            number_ = room<Column>(graph_.states);
            std::fill_n(number_.get(), graph_.states, Column(APART));
            edges_.emplace(Edges{graph_, usable_});
            search_.emplace(*edges_, number_.get(), graph_.states);
        }
        Index first = begin_[own], behind = end_[own];
        for (Index at = first; at < behind; at++) number_[order_[at]] = WANTED<Column>;
        found_.clear();
        std::vector<Index> bounds;
        search_->restart(behind - first);
        for (Index at = first; at < behind; at++) {
            if (number_[order_[at]] != WANTED<Column>) continue;
            search_->from(order_[at], [&](const Column* member, const Column* last) {
                found_.insert(found_.end(), member, last);
                bounds.push_back(static_cast<Index>(found_.size()));
            });
        }
        if (search_->count() == 1) return;
        Index next = blocks_, at = 0, name = own;
        for (Index bound : bounds) {
            begin_[name] = end_[name] = static_cast<Column>(first + at);
            for (; at < bound; at++) put(found_[at], name);
            name = name == own ? next : name + 1;
        }
        blocks_ = next + search_->count() - 1;
        lose_in_each(own, next, search_->count());
    }

    using Edges = prism_gpu::UsableEdges<Offset, Column>;

    const Graph<Offset, Column>& graph_;
    Mask* usable_;
    Column* block_;
    Index first_budget_;
    // A block is order_[begin_] to order_[end_ - 1]; place_ is where each state is in there.
    Room<Column> order_, place_, begin_, end_;
    Room<Column> remaining_;  // usable rows of each state
    std::vector<Column> lost_, removed_, found_;
    std::vector<Pending> pending_;
    Room<Index> marks_;
    Index mark_ = 0, blocks_ = 1;
    Room<Column> number_;
    std::optional<Edges> edges_;
    std::optional<prism_gpu::ComponentSearch<Column, Edges>> search_;
};

}  // namespace

// Finds the maximal end components of the states of a mask; returns how many there are.
//
// labels, of the type of columns: the component of each state, numbered by their smallest states, or -1.
// usable: the rows that may be used, overwritten by those of components. first_budget: states that a search
// for a closed set may visit before the other candidates have their turn.
extern "C" std::int64_t pg_end_components(
    const PgGraph* given, const Mask* restrict, std::int64_t first_budget, Mask* usable, void* labels) {
    return prism_gpu::with_types(*given, [&]<class Offset, class Column>(const Graph<Offset, Column>& graph) {
        auto block = static_cast<Column*>(labels);
        Index blocks = EndComponents<Offset, Column>(graph, restrict, usable, block, first_budget).refine();
        return prism_gpu::renumber(graph.states, block, blocks);
    });
}
