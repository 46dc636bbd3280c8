/* The states of a program, and the rows of its matrix. Before it stand `montecarlo.cuh` and what
 * `engines.program.successors` writes: `Values`, `WORDS`, and `search_from`, `count_from`,
 * `rows_from`, which go through the transitions of a state, and `value_of`. Of the model's doubles they know
 * the places in `numbers` alone.
 *
 * A list has the states in the order in which they were found, a hash table with linear probing says
 * which are there: it holds states of one word themselves, and of longer ones their places in the list.
 */

#define EMPTY 0xffffffffffffffffull /* no word of a state is all ones */

#if WORDS == 1
typedef u64 Slot;
#define FREE EMPTY
#else
typedef u32 Slot;
#define FREE 0xffffffffu
#endif

HD u64 mixed(u64 x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93ull;
  return x ^ x >> 32;
}

HD u64 hash_of(const u64 *state) {
  u64 hash = mixed(state[0]);
  for (int word = 1; word < WORDS; word++) hash = mixed(hash ^ state[word]);
  return hash;
}

/* The words of a state of the list, past the first cache, which other threads' writes do not reach. */
HD void load(u64 *state, const u64 *states, u64 place) {
  for (int word = 0; word < WORDS; word++) state[word] = __ldcg(states + place * WORDS + word);
}

HD int holds(Slot slot, const u64 *states, const u64 *state) {
#if WORDS == 1
  (void)states;
  return slot == state[0];
#else
  int same = 1;
  for (int word = 0; word < WORDS; word++) same &= __ldcg(states + (u64)slot * WORDS + word) == state[word];
  return same;
#endif
}

/* ---- search ---- */

/* How far a search is; `engines.cuda.exploring.SEARCH`. */
typedef struct {
  u64 found;                            /* places of the list that are taken, be they there or not */
  u64 begin, end;                       /* the states of the list that are expanded at present */
  u64 levels;                           /* that may still be made before the host is asked */
  u64 holes;                            /* of those places, the ones that hold no state */
  u64 transitions, choices;             /* of the states before `begin` */
  u64 level_transitions, level_choices; /* of those that are being expanded */
  u32 arrived, phase;                   /* blocks that wait for the others; how often all have met */
  u32 goes_on;
  u32 full;                             /* whether a state of the level was left out for want of room */
  u32 faulty, unused;                   /* whether a state that is being expanded has a fault */
} Search;

typedef struct {
  Slot *table;
  u64 mask;
  u64 *states;
  u64 capacity;
  Search *search;
  u32 transitions, choices;
  u64 spare; /* a place of the list that was taken and not needed, or EMPTY */
} Searcher;

/* Which of the calling threads of a warp come before, and the place that the first is given. */
HD u64 next_place(u64 *counter) {
  unsigned together = __activemask(), lane = threadIdx.x & 31u;
  int leader = __ffs((int)together) - 1;
  u64 place = 0;
  if ((int)lane == leader) place = atomicAdd(counter, (u64)__popc(together));
  place = __shfl_sync(together, place, leader);
  return place + (u64)__popc(together & ((1u << lane) - 1u));
}

#if WORDS == 1
__device__ static __noinline__ void insert(Searcher *into, const u64 *target) {
  u64 state = *target, slot = mixed(state) & into->mask;
  for (;; slot = (slot + 1) & into->mask) {
    u64 there = __ldcg(into->table + slot);
    if (there == EMPTY) {
      /* A full list ends the level, which is begun again with more room. */
      if (__ldcg(&into->search->found) >= into->capacity) {
        into->search->full = 1;
        return;
      }
      there = atomicCAS(into->table + slot, EMPTY, state);
    }
    if (there == state) return;
    if (there != EMPTY) continue;
    u64 place = next_place(&into->search->found);
    if (place < into->capacity) into->states[place] = state;
    return;
  }
}
#else
/* Writes a state to the list before its place is shown in the table. */
__device__ static __noinline__ void insert(Searcher *into, const u64 *target) {
  u64 slot = hash_of(target) & into->mask;
  for (;; slot = (slot + 1) & into->mask) {
    u32 there = __ldcg(into->table + slot);
    if (there == FREE) {
      if (into->spare == EMPTY) {
        u64 place = __ldcg(&into->search->found);
        if (place < into->capacity) place = next_place(&into->search->found);
        if (place >= into->capacity) {
          into->search->full = 1;
          return;
        }
        into->spare = place;
      }
      for (int word = 0; word < WORDS; word++) into->states[into->spare * WORDS + word] = target[word];
      __threadfence();
      there = atomicCAS(into->table + slot, FREE, (u32)into->spare);
      if (there == FREE) {
        into->spare = EMPTY;
        return;
      }
    }
    if (holds(there, into->states, target)) return;
  }
}
#endif

/* Marks the place that a thread has taken and not needed. */
HD void give_up_spare(Searcher *searcher) {
  if (searcher->spare == EMPTY) return;
  searcher->states[searcher->spare * WORDS] = EMPTY;
  searcher->spare = EMPTY;
  atomicAdd(&searcher->search->holes, 1ull);
}

HD void search_take(void *context, int choice, int action, double weight, const u64 *target) {
  Searcher *into = (Searcher *)context;
  (void)action;
  (void)weight;
  into->transitions++;
  into->choices = (u32)choice + 1;
  insert(into, target);
}
SEARCH_FROM

extern "C" __global__ void begin_search(Slot *table, u64 mask, const u64 *states, u64 count) {
  u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  if (i >= count) return;
  const u64 *state = states + i * WORDS;
  if (state[0] == EMPTY) return;
  Slot shown = WORDS == 1 ? (Slot)state[0] : (Slot)i;
  u64 slot = hash_of(state) & mask;
  while (atomicCAS(table + slot, FREE, shown) != FREE) slot = (slot + 1) & mask;
}

/* Called by one thread while all others wait: what comes after a level. A level that has filled the list, or has
 * a fault, is not counted, and stays to be expanded. */
HD void close_level(Search *search, u64 capacity) {
  u64 found = __ldcg(&search->found);
  int over = __ldcg(&search->full) || found > capacity || __ldcg(&search->faulty);
  if (!over) {
    search->transitions += __ldcg(&search->level_transitions);
    search->choices += __ldcg(&search->level_choices);
    search->begin = search->end;
    search->end = found;
    search->levels--;
  }
  search->level_transitions = search->level_choices = 0;
  search->goes_on = !over && search->begin < search->end && search->levels > 0;
}

/* Waits until all blocks have come here. */
HD void meet(Search *search, u64 capacity) {
  __syncthreads();
  if (threadIdx.x == 0) {
    volatile u32 *phase = &search->phase;
    u32 before = *phase;
    __threadfence();
    if (atomicAdd(&search->arrived, 1u) == gridDim.x - 1) {
      search->arrived = 0;
      close_level(search, capacity);
      __threadfence();
      *phase = before + 1;
    } else {
      while (*phase == before) {
      }
    }
    __threadfence();
  }
  __syncthreads();
}

/* Expands level after level, until no state is new, one has a fault, the list is full, or the host is to be
 * asked. All blocks must run at once. */
extern "C" __global__ void __launch_bounds__(256, 4) search_levels(
    Slot *table, u64 mask, u64 *states, u64 capacity, Search *search, const double *__restrict__ numbers) {
  Searcher searcher = {table, mask, states, capacity, search, 0, 0, EMPTY};
  u64 thread = blockIdx.x * (u64)blockDim.x + threadIdx.x, threads = gridDim.x * (u64)blockDim.x;
  do {
    u64 begin = __ldcg(&search->begin), end = __ldcg(&search->end);
    u64 transitions = 0, choices = 0;
    for (u64 i = begin + thread; i < end; i += threads) {
      searcher.transitions = searcher.choices = 0;
      u64 state[WORDS];
      load(state, states, i);
      if (WORDS > 1 && state[0] == EMPTY) continue;
      if (search_from(state, &searcher, numbers)) search->faulty = 1;
      transitions += searcher.transitions;
      choices += searcher.choices;
    }
    give_up_spare(&searcher);
    for (int apart = 16; apart > 0; apart /= 2) {
      transitions += __shfl_down_sync(0xffffffffu, transitions, apart);
      choices += __shfl_down_sync(0xffffffffu, choices, apart);
    }
    if ((threadIdx.x & 31u) == 0 && transitions > 0) {
      atomicAdd(&search->level_transitions, transitions);
      atomicAdd(&search->level_choices, choices);
    }
    meet(search, capacity);
  } while (*(volatile u32 *)&search->goes_on);
}

/* ---- rows ---- */

typedef struct {
  const Slot *table;
  u64 mask;
  const u64 *found;    /* the list of states */
  const int *ranks;    /* the number of each state: by its place in the table, of longer ones in the list */
  u32 transitions;     /* of the state so far */
  int choice;          /* the last choice that was met, or -1 */
  u32 begin;           /* the transition that it began with */
  double sum, total;   /* of its weights, and of all choices before */
  u64 place;           /* where the state's transitions are written */
  u64 row;             /* where the lengths and actions of its choices are */
  int *columns;
  double *values;
  int *actions;        /* null where they are not wanted */
  int *lengths;        /* of choices; null for a chain */
  int *row_actions;    /* of choices; null where they are not wanted */
} Row;

/* Where the table has a state that is there. */
HD u64 slot_of(const Slot *table, u64 mask, const u64 *found, const u64 *state) {
  u64 slot = hash_of(state) & mask;
  while (!holds(__ldg(table + slot), found, state)) slot = (slot + 1) & mask;
  return slot;
}

extern "C" __global__ void rank_states(
    const Slot *table, u64 mask, const u64 *found, int *ranks, const u64 *states, u64 count) {
  u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  if (i >= count) return;
  u64 slot = slot_of(table, mask, found, states + i * WORDS);
  ranks[WORDS == 1 ? slot : (u64)table[slot]] = (int)i;
}

HD void count_take(void *context, int choice, int action, double weight, const u64 *target) {
  Row *row = (Row *)context;
  (void)action;
  (void)weight;
  (void)target;
  row->transitions++;
  row->choice = choice;
}
COUNT_FROM

/* Counts the transitions and choices of states; a deadlock has one of each. */
extern "C" __global__ void count_rows(
    const u64 *states, u64 count, int *transitions, int *choices, u8 *deadlocks, const double *__restrict__ numbers) {
  u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  if (i >= count) return;
  Row row;
  row.transitions = 0;
  row.choice = -1;
  count_from(states + i * WORDS, &row, numbers);
  int deadlock = row.transitions == 0;
  deadlocks[i] = (u8)deadlock;
  transitions[i] = deadlock ? 1 : (int)row.transitions;
  if (choices) choices[i] = deadlock ? 1 : row.choice + 1;
}

extern "C" __global__ void find_faults(
    const u64 *states, u64 count, u8 *faulty, const double *__restrict__ numbers) {
  u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  if (i >= count) return;
  Row row;
  row.transitions = 0;
  row.choice = -1;
  const u64 *state = states + i * WORDS;
  faulty[i] = state[0] != EMPTY && count_from(state, &row, numbers);
}

HD void end_choice(Row *row) {
  if (row->lengths) row->lengths[row->row + row->choice] = (int)(row->transitions - row->begin);
  row->total += row->sum;
  row->sum = 0.0;
  row->begin = row->transitions;
}

__device__ static __noinline__ void write(Row *row, int choice, int action, double weight, const u64 *target) {
  u64 slot = slot_of(row->table, row->mask, row->found, target);
  u64 ranked = WORDS == 1 ? slot : (u64)__ldg(row->table + slot);
  if (choice != row->choice) {
    if (row->choice >= 0) end_choice(row);
    row->choice = choice;
    if (row->row_actions) row->row_actions[row->row + choice] = action;
  }
  row->sum += weight;
  u64 place = row->place + row->transitions++;
  row->columns[place] = __ldg(row->ranks + ranked);
  row->values[place] = weight;
  if (row->actions) row->actions[place] = action;
}

HD void rows_take(void *context, int choice, int action, double weight, const u64 *target) {
  write((Row *)context, choice, action, weight, target);
}
ROWS_FROM

/* Brings transitions from `begin` to before `end` together, those to the same state under the same action
 * added up in their order; returns how many are left, from `into` on. */
HD u32 merged(Row *row, u32 begin, u32 end, u32 into) {
  int *columns = row->columns + row->place, *actions = row->actions ? row->actions + row->place : 0;
  double *values = row->values + row->place;
  u32 first = into;
  for (u32 i = begin; i < end; i++) {
    int column = columns[i], action = actions ? actions[i] : -1;
    double value = values[i];
    if (value == 0.0) continue; /* a product of weights may be too small for a double */
    u32 at = first;
    while (at < into && (columns[at] != column || (actions && actions[at] != action))) at++;
    if (at < into) {
      values[at] += value;
      continue;
    }
    columns[into] = column;
    values[into] = value;
    if (actions) actions[into] = action;
    into++;
  }
  return into - first;
}

HD void sort_choice(Row *row, u32 begin, u32 size) {
  int *columns = row->columns + row->place + begin;
  double *values = row->values + row->place + begin;
  for (u32 i = 1; i < size; i++) {
    int column = columns[i];
    double value = values[i];
    u32 at = i;
    for (; at > 0 && columns[at - 1] > column; at--) {
      columns[at] = columns[at - 1];
      values[at] = values[at - 1];
    }
    columns[at] = column;
    values[at] = value;
  }
}

/* PRISM's `PrismUtils.doublesAreEqual` of numbers that are not 0. */
HD int same_value(double a, double b) {
  if (magnitude(a) == INFINITE || magnitude(b) == INFINITE) return a == b;
  return magnitude((a - b) / a) < 1e-12;
}

/* Whether a choice equals one before it under the same action. */
HD int is_there(const Row *row, int choice, u32 begin, u32 size) {
  const int *lengths = row->lengths + row->row, *columns = row->columns + row->place;
  const double *values = row->values + row->place;
  u32 at = 0;
  for (int other = 0; other < choice; at += (u32)lengths[other++]) {
    if ((u32)lengths[other] != size) continue;
    if (row->row_actions && row->row_actions[row->row + other] != row->row_actions[row->row + choice]) continue;
    u32 i = 0;
    while (i < size && columns[at + i] == columns[begin + i] && same_value(values[begin + i], values[at + i])) i++;
    if (i == size) return 1;
  }
  return 0;
}

/* Brings the choices of a state of an MDP together; returns how many are left. */
HD int choices_of(Row *row, u32 *size) {
  int *lengths = row->lengths + row->row, kept = 0, choices = row->choice + 1;
  int *actions = row->row_actions ? row->row_actions + row->row : 0;
  u32 begin = 0, into = 0;
  for (int choice = 0; choice < choices; choice++) {
    u32 end = begin + (u32)lengths[choice];
    u32 left = merged(row, begin, end, into);
    sort_choice(row, into, left);
    if (actions) actions[kept] = actions[choice];
    begin = end;
    if (is_there(row, kept, into, left)) continue;
    lengths[kept++] = (int)left;
    into += left;
  }
  *size = into;
  return kept;
}

/* Writes the rows of states, the first of which has the number `first`, and how many transitions and
 * choices are left of those that were counted. */
extern "C" __global__ void write_rows(
    const Slot *table, u64 mask, const u64 *found, const int *ranks, const u64 *states, u64 count, u64 first,
    int scaled, const i64 *places, const i64 *rows, int *columns, double *values, int *actions, int *lengths,
    int *row_actions, int *transitions, int *choices, const double *__restrict__ numbers) {
  u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  if (i >= count) return;
  Row row = {table, mask, found, ranks, 0, -1, 0, 0.0, 0.0, (u64)places[i], rows ? (u64)rows[i] : 0,
             columns, values, actions, lengths, row_actions};
  rows_from(states + i * WORDS, &row, numbers);
  if (row.choice < 0) {
    columns[row.place] = (int)(first + i);
    values[row.place] = 1.0;
    if (actions) actions[row.place] = -1;
    if (lengths) lengths[row.row] = 1;
    if (row_actions) row_actions[row.row] = -1;
    return;
  }
  end_choice(&row);
  u32 size;
  if (lengths) {
    choices[i] = choices_of(&row, &size);
  } else {
    if (scaled) {
      double factor = 1.0 / row.total;
      for (u32 at = 0; at < row.transitions; at++) values[row.place + at] *= factor;
    }
    size = merged(&row, 0, row.transitions, 0);
  }
  transitions[i] = (int)size;
}

/* Copies what is left of rows to where it belongs. */
extern "C" __global__ void compact_rows(
    u64 count, const i64 *from, const i64 *to, const int *columns, const double *values, const int *actions,
    int *to_columns, double *to_values, int *to_actions) {
  u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  if (i >= count) return;
  i64 source = from[i], target = to[i], size = to[i + 1] - target;
  for (i64 at = 0; at < size; at++) {
    if (columns) {
      to_columns[target + at] = columns[source + at];
      to_values[target + at] = values[source + at];
    }
    if (actions) to_actions[target + at] = actions[source + at];
  }
}

/* ---- values ---- */

EVALUATION

extern "C" __global__ void evaluate_states(
    const u64 *states, u64 count, int which, double *values, u8 *truths, u64 *failing,
    const double *__restrict__ numbers) {
  u64 i = blockIdx.x * (u64)blockDim.x + threadIdx.x;
  if (i >= count) return;
  int failed = 0;
  double value = value_of(states + i * WORDS, which, &failed, numbers);
  if (failed) atomicMin(failing, i);
  if (truths)
    truths[i] = (u8)(value != 0.0);
  else
    values[i] = value;
}
