/* How paths are made of the functions that a model's source defines: begin, states one by one, the
 * answers. DEADLOCKS_FIXED is 0 where a deadlock is an error; LAZY is 1 where commands are drawn
 * before their guards are looked at.
 */

HD void begin(Path *p, u64 seed, u64 path) {
  p->draws.seed = seed;
  p->draws.path = path;
  p->draws.block = 0;
  p->draws.waiting = 0;
  p->draws.has_waiting = 0;
  p->steps = 0;
  p->time = p->stay = 0.0;
  p->fail = p->bad = p->none = 0;
  p->sure = p->same = p->looping = 0;
  begin_questions(p);
  place(p);
}

/* A state that is never left. */
HD int rest(Path *p) {
  if (!DEADLOCKS_FIXED) p->fail = 1;
  stay(p);
  return 1;
}

/* Takes note of the state, and leaves it. Returns 1 when the path has ended. */
HD int advance(Path *p, i64 limit) {
  int open;
  ask(p);
  if (p->fail) return 1;
  open = any_open(p);
  if (!open && DEADLOCKS_FIXED) return 1;
  p->looks = !DEADLOCKS_FIXED || p->steps >= limit;
  weigh(p);
  if (p->fail) return 1;
  if (p->total == 0) return rest(p);
  if (!open || (p->steps >= limit && !bounded_open(p))) return 1;
  move(p);
  if (p->fail) return 1;
  if (LAZY && p->total == 0) return rest(p);
  p->looping |= p->sure && p->same;
  p->steps++;
  return 0;
}

/* The length of a path that failed is -1 - steps. */
HD i64 length_of(const Path *p, i64 limit) {
  if (p->fail) return -1 - p->steps;
  return any_open(p) && p->steps < limit ? limit : p->steps;
}

#ifdef __CUDACC__
/* A thread takes the next path as soon as its own has ended, so that long paths hold nobody up. */
extern "C" __global__ void sample_paths(u64 seed, u64 first, u64 count, i64 limit, u8 *booleans,
                                        double *rewards, i64 *lengths, u64 *next) {
  Path p;
  u64 i = 0;
  int active = 0;
  for (;;) {
    if (!active) {
      i = atomicAdd(next, 1ull);
      if (i >= count) return;
      begin(&p, seed, first + i);
      active = 1;
    }
    if (advance(&p, limit)) {
      store(&p, booleans, rewards, count, i);
      lengths[i] = length_of(&p, limit);
      active = 0;
    }
  }
}
#else
/* Paths first + from to first + to - 1, whose answers go into rows of so many columns. */
EXPORTED void sample_paths(u64 seed, u64 first, u64 from, u64 to, i64 limit, u8 *booleans,
                           double *rewards, i64 *lengths, u64 columns) {
  u64 i;
  Path p;
  for (i = from; i < to; i++) {
    begin(&p, seed, first + i);
    while (!advance(&p, limit)) {
    }
    store(&p, booleans, rewards, columns, i);
    lengths[i] = length_of(&p, limit);
  }
}
#endif
