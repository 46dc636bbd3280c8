/* What the compiled sources of models share: draws, and arithmetic that is the same everywhere.
 *
 * Compiled as C for the CPU and as CUDA C++ for the GPU, without contraction of multiplications and
 * additions; nothing here calls a mathematical library. engines/program/arithmetic.py and
 * philox.py say what each function computes, how accurately, and from which source.
 */

#ifdef __CUDACC__
#define HD __device__ static inline
#define TABLE __device__ static const
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
typedef unsigned char u8;
#else
#include <stdint.h>
#include <string.h>
#define HD static inline
#define TABLE static const
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;
typedef uint8_t u8;
#define EXPORTED __attribute__((visibility("default")))
#endif

/* ---- doubles as bits ---- */

HD u64 bits_of(double x) {
#ifdef __CUDACC__
  return (u64)__double_as_longlong(x);
#else
  u64 bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
#endif
}

HD double from_bits(u64 bits) {
#ifdef __CUDACC__
  return __longlong_as_double((i64)bits);
#else
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
#endif
}

#define INFINITE from_bits(0x7ff0000000000000ull)
#define NOT_A_NUMBER from_bits(0x7ff8000000000000ull)

HD int is_negative(double x) { return (int)(bits_of(x) >> 63); }
HD double magnitude(double x) { return from_bits(bits_of(x) & 0x7fffffffffffffffull); }
HD double power_of_two(int k) { return from_bits((u64)(k + 1023) << 52); }

/* ---- draws: Philox4x32-10 ---- */

typedef struct {
  u64 seed, path, block, waiting;
  int has_waiting;
} Draws;

HD u64 draw(Draws *draws) {
  u32 a, b, c, d, k, l;
  int round;
  if (draws->has_waiting) {
    draws->has_waiting = 0;
    return draws->waiting;
  }
  a = (u32)draws->block;
  b = (u32)(draws->block >> 32);
  c = (u32)draws->path;
  d = (u32)(draws->path >> 32);
  k = (u32)draws->seed;
  l = (u32)(draws->seed >> 32);
#ifdef __CUDACC__
#pragma unroll
#endif
  for (round = 0; round < 10; round++) {
    u64 first = (u64)0xD2511F53u * a, second = (u64)0xCD9E8D57u * c;
    a = (u32)(second >> 32) ^ b ^ k;
    b = (u32)second;
    c = (u32)(first >> 32) ^ d ^ l;
    d = (u32)first;
    k += 0x9E3779B9u;
    l += 0xBB67AE85u;
  }
  draws->block++;
  draws->waiting = (u64)d << 32 | c;
  draws->has_waiting = 1;
  return (u64)b << 32 | a;
}

HD double unit(u64 bits) { return (double)(i64)(bits >> 11) * 0x1p-53; }
HD double positive_unit(u64 bits) { return (double)(i64)((bits >> 11) + 1) * 0x1p-53; }

/* The upper 64 bits of bits * count; the lower ones are left. */
HD u32 split(u64 bits, u32 count, u64 *left) {
  u64 low = (bits & 0xffffffffu) * count;
  *left = bits * count;
  return (u32)(((bits >> 32) * count + (low >> 32)) >> 32);
}

/* ---- logarithms and powers ---- */

HD double reduced(double x, int *exponent) {
  int e = 0;
  u64 bits;
  double m;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    e = -54;
  }
  bits = bits_of(x);
  e += (int)(bits >> 52) - 1022;
  m = from_bits((bits & 0x000fffffffffffffull) | 0x3fe0000000000000ull);
  if (m < 0.7071067811865476) {
    m *= 2.0;
    e--;
  }
  *exponent = e;
  return m;
}

/* LOG_TERMS and so on come with the constants that arithmetic.py names. */
HD double logarithm(double x) {
  int e, k;
  double m = reduced(x, &e), f = m - 1.0, s = f / (2.0 + f), z = s * s;
  double tail = 1.0 / (2 * LOG_TERMS + 1);
#ifdef __CUDACC__
#pragma unroll
#endif
  for (k = LOG_TERMS - 1; k > 0; k--) tail = tail * z + 1.0 / (2 * k + 1);
  tail = tail * z;
  return e * LOG_2_HIGH + (f - (s * (f - 2.0 * tail) - e * LOG_2_LOW));
}

typedef struct {
  double high, low;
} Pair;

HD Pair pair(double high, double low) {
  Pair p;
  p.high = high;
  p.low = low;
  return p;
}

HD Pair two_sum(double a, double b) {
  double total = a + b, part = total - a;
  return pair(total, (a - (total - part)) + (b - part));
}

HD Pair quick_sum(double a, double b) {
  double total = a + b;
  return pair(total, b - (total - a));
}

HD Pair two_product(double a, double b) {
  double product = a * b, c = 134217729.0 * a, a_high = c - (c - a), a_low = a - a_high;
  double d = 134217729.0 * b, b_high = d - (d - b), b_low = b - b_high;
  return pair(product,
              ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low);
}

HD Pair add_pairs(Pair a, Pair b) {
  Pair sum = two_sum(a.high, b.high);
  return quick_sum(sum.high, sum.low + (a.low + b.low));
}

HD Pair multiply_pairs(Pair a, Pair b) {
  Pair product = two_product(a.high, b.high);
  return quick_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

HD Pair divide_pairs(Pair a, Pair b) {
  double first = a.high / b.high;
  Pair product = multiply_pairs(pair(first, 0.0), b);
  Pair rest = add_pairs(a, pair(-product.high, -product.low));
  return quick_sum(first, rest.high / b.high);
}

HD Pair log_pair(double x) {
  int e, k;
  double m = reduced(x, &e);
  Pair s = divide_pairs(pair(m - 1.0, 0.0), two_sum(m, 1.0)), z = multiply_pairs(s, s);
  Pair one = pair(1.0, 0.0), log_2 = pair(LOG_2, LOG_2_REST), product;
  Pair tail = divide_pairs(one, pair(2.0 * PRECISE_LOG_TERMS + 1.0, 0.0));
  for (k = PRECISE_LOG_TERMS - 1; k >= 0; k--)
    tail = add_pairs(multiply_pairs(tail, z), divide_pairs(one, pair(2.0 * k + 1.0, 0.0)));
  product = multiply_pairs(s, tail);
  return add_pairs(multiply_pairs(pair((double)e, 0.0), log_2),
                   pair(2.0 * product.high, 2.0 * product.low));
}

HD double precise_logarithm(double x) {
  Pair log;
  if (x != x || x < 0.0) return NOT_A_NUMBER;
  if (x == 0.0) return -INFINITE;
  if (x == INFINITE) return x;
  log = log_pair(x);
  return log.high + log.low;
}

HD double logarithm_to_base(double x, double base) {
  if (!(0.0 < base && base < INFINITE) || base == 1.0) return NOT_A_NUMBER;
  return precise_logarithm(x) / precise_logarithm(base);
}

/* The whole number below x, for |x| < 2^53. */
HD double below(double x) {
  double whole = (double)(i64)x;
  return whole > x ? whole - 1.0 : whole;
}

HD double exponential(Pair z) {
  int k = (int)below(z.high / LOG_2 + 0.5), n, half;
  Pair multiple = multiply_pairs(pair((double)k, 0.0), pair(LOG_2, LOG_2_REST));
  Pair r = add_pairs(z, pair(-multiple.high, -multiple.low));
  Pair one = pair(1.0, 0.0), total = one;
  for (n = EXP_TERMS; n > 0; n--)
    total = add_pairs(one, divide_pairs(multiply_pairs(total, r), pair((double)n, 0.0)));
  half = k >= 0 ? k / 2 : -((1 - k) / 2);
  return (total.high + total.low) * power_of_two(half) * power_of_two(k - half);
}

HD double power(double x, double y) {
  double sign = 1.0, rough, size = magnitude(y);
  int negative = x < 0.0, integral = size >= 0x1p53 || below(y) == y;
  Pair log;
  if (y == 0.0) return 1.0;
  if (x != x || y != y || (magnitude(x) == 1.0 && size == INFINITE)) return NOT_A_NUMBER;
  if (is_negative(x) && size < 0x1p53 && integral && ((i64)y & 1)) sign = -1.0;
  x = magnitude(x);
  if (x == 0.0 || x == INFINITE || size == INFINITE)
    return sign * ((x > 1.0) == (y > 0.0) ? INFINITE : 0.0);
  if (negative && !integral) return NOT_A_NUMBER;
  log = log_pair(x);
  rough = y * log.high;
  if (rough > 720.0) return sign * INFINITE;
  if (rough < -760.0) return sign * 0.0;
  return sign * (rough != 0.0 ? exponential(multiply_pairs(pair(y, 0.0), log)) : 1.0);
}

/* ---- integers: an overflow sets *fail ---- */

HD int fitting(i64 value, u32 *fail) {
  if (value < -2147483647 - 1 || value > 2147483647) *fail = 1;
  return (int)value;
}

HD int add_exact(int a, int b, u32 *fail) { return fitting((i64)a + b, fail); }
HD int subtract_exact(int a, int b, u32 *fail) { return fitting((i64)a - b, fail); }
HD int multiply_exact(int a, int b, u32 *fail) { return fitting((i64)a * b, fail); }
HD int negate_exact(int a, u32 *fail) { return fitting(-(i64)a, fail); }

HD int integer_power(int base, int exponent, u32 *fail) {
  i64 result = 1;
  if (exponent < 0 || (exponent > 31 && (base > 1 || base < -1))) {
    *fail = 1;
    return 0;
  }
  if (base == -1) return exponent & 1 ? -1 : 1;
  if (base == 0 || base == 1) return base == 1 || exponent == 0;
  for (; exponent > 0; exponent--) result = fitting(result * base, fail);
  return (int)result;
}

HD int modulo(int a, int b, u32 *fail) {
  int rest;
  if (b <= 0) {
    *fail = 1;
    return 0;
  }
  rest = a % b;
  return rest < 0 ? rest + b : rest;
}

HD int whole(double rounded, u32 *fail) {
  if (!(rounded >= -2147483648.0 && rounded <= 2147483647.0)) {
    *fail = 1;
    return 0;
  }
  return (int)rounded;
}

HD int floor_of(double x, u32 *fail) {
  return whole(magnitude(x) < 0x1p53 ? below(x) : x, fail);
}
HD int ceil_of(double x, u32 *fail) {
  return whole(magnitude(x) < 0x1p53 ? -below(-x) : x, fail);
}
HD int round_of(double x, u32 *fail) {
  double under;
  if (x != x) return 0;
  if (!(magnitude(x) < 0x1p53)) return whole(x, fail);
  under = below(x);
  return whole(x - under >= 0.5 ? under + 1.0 : under, fail);
}

/* A truth of which a compiler knows nothing more. NVIDIA's compilers before that of CUDA 13.4 make one
 * instruction of the greatest of `a`, `-b` and `c`, and of the least, for devices of compute capability 9.0
 * and higher, and lose the sign of `-b` in it. */
HD int opaque(int truth) {
#ifdef __CUDACC__
  asm("" : "+r"(truth));
#endif
  return truth;
}

HD int least_int(int a, int b) { return opaque(a < b) ? a : b; }
HD int greatest_int(int a, int b) { return opaque(a > b) ? a : b; }

HD double least(double a, double b) {
  if (a != a || b != b) return NOT_A_NUMBER;
  if (a == b) return is_negative(a) ? a : b;
  return a < b ? a : b;
}
HD double greatest(double a, double b) { return -least(-a, -b); }

HD int same_double(double a, double b) {
  if (a != a || b != b) return a != a && b != b;
  return bits_of(a) == bits_of(b);
}

/* A probability, rate or reward: finite and not negative. */
HD double checked(double x, u32 *fail) {
  if (!(x >= 0.0 && x < INFINITE)) *fail = 1;
  return x;
}
/* The sum of one command's weights. */
HD void check_sum(double total, int sums_to_one, u32 *fail) {
  if (total == 0.0) *fail = 1;
  if (sums_to_one && !(magnitude((total - 1.0) / total) < 1e-12)) *fail = 1;
}

/* ---- weights ---- */

/* Where x falls among n weights laid end to end; where rounding lets it reach the end, the last
 * weight that is not 0. */
HD int fall(const double *w, int n, double x) {
  int i, last = 0;
  for (i = 0; i < n; i++) {
    if (w[i] > 0.0) {
      last = i;
      if (x < w[i]) break;
      x -= w[i];
    }
  }
  return last;
}

HD int positive(const double *w, int n) {
  int i, count = 0;
  for (i = 0; i < n; i++) count += w[i] > 0.0;
  return count;
}

/* The same in a group of FAN_OUT weights, of which the last may have fewer; *x becomes how far into
 * the weight it falls. */
#define DEFINE_FALL(NAME, STORED, WEIGHT)                                   \
  HD int NAME(const STORED *w, int size, int group, WEIGHT *x) {            \
    int i = group * FAN_OUT, last = i, end = i + FAN_OUT;                   \
    WEIGHT left = *x, rest = left;                                          \
    if (end > size) end = size;                                             \
    for (; i < end; i++) {                                                  \
      WEIGHT weight = w[i];                                                 \
      if (weight > 0) {                                                     \
        last = i;                                                           \
        rest = left;                                                        \
        if (left < weight) break;                                           \
        left -= weight;                                                     \
      }                                                                     \
    }                                                                       \
    *x = rest;                                                              \
    return last;                                                            \
  }

/* The same among counts, of which a group has FAN_OUT: without a branch, since none could be
 * foreseen. */
#define DEFINE_COUNT_FALL(NAME, STORED)                                     \
  HD int NAME(const STORED *w, int group, u32 *x) {                         \
    const STORED *first = w + group * FAN_OUT;                              \
    u32 sum = 0, before = 0, passed = 0, i;                                 \
    for (i = 0; i < FAN_OUT; i++) {                                         \
      u32 is_passed;                                                        \
      sum += first[i];                                                      \
      is_passed = sum <= *x;                                                \
      passed += is_passed;                                                  \
      before = is_passed ? sum : before;                                    \
    }                                                                       \
    *x -= before;                                                           \
    return group * FAN_OUT + (int)passed;                                   \
  }

/* The sum of such a group, in order. */
#define DEFINE_SUM(NAME, STORED, WEIGHT)                                    \
  HD WEIGHT NAME(const STORED *w, int size, int group) {                    \
    int i = group * FAN_OUT, end = i + FAN_OUT;                             \
    WEIGHT total = w[i];                                                    \
    if (end > size) end = size;                                             \
    for (i++; i < end; i++) total += w[i];                                  \
    return total;                                                           \
  }
