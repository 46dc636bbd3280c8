
/* The program: SEED FIRST COUNT on its command line. It samples the paths FIRST to FIRST + COUNT - 1
 * one after the other and prints a line a question. PATH_LIMIT, BOOLEANS and REWARDS are how many
 * steps a path takes at most and how many questions of either kind there are.
 */

#ifndef __CUDACC__
static int is_number(const char *word, u64 *value) {
  const char *c = word;
  *value = 0;
  for (; *c >= '0' && *c <= '9'; c++) {
    u64 digit = (u64)(*c - '0');
    if (*value > (UINT64_MAX - digit) / 10) return 0;
    *value = 10 * *value + digit;
  }
  return c != word && *c == 0;
}

int main(int argc, char **argv) {
  static u64 counts[BOOLEANS + 1][3];
  static double sums[REWARDS + 1];
  static u8 booleans[BOOLEANS + 1];
  static double rewards[REWARDS + 1];
  u64 seed, first, count, i;
  int k;
  if (argc != 4 || !is_number(argv[1], &seed) || !is_number(argv[2], &first) ||
      !is_number(argv[3], &count) || count == 0 || first > UINT64_MAX - (count - 1)) {
    fprintf(stderr, "usage: %s SEED FIRST COUNT\n", argv[0]);
    return 2;
  }
  for (i = 0; i < count; i++) {
    i64 length;
    sample_paths(seed, first + i, 0, 1, PATH_LIMIT, booleans, rewards, &length, 1);
    if (length < 0) {
      fprintf(stderr, "path %llu met an error after %lld steps\n",
              (unsigned long long)(first + i), (long long)(-1 - length));
      return 1;
    }
    for (k = 0; k < BOOLEANS; k++) counts[k][booleans[k]]++;
    for (k = 0; k < REWARDS; k++) sums[k] += rewards[k];
  }
  for (k = 0; k < BOOLEANS; k++)
    printf("true %llu false %llu undecided %llu\n", (unsigned long long)counts[k][1],
           (unsigned long long)counts[k][0], (unsigned long long)counts[k][2]);
  for (k = 0; k < REWARDS; k++) printf("sum %.17g of %llu\n", sums[k], (unsigned long long)count);
  return 0;
}
#endif
