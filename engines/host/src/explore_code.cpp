// What the operations of byte code do.
#include "explore_code.hpp"

#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "explore_arithmetic.hpp"
#include "team.hpp"

namespace prism_gpu {

namespace {

enum Op : std::int32_t {
    LOAD_BOOL, LOAD_INT, NOT, AND, OR, SAME_BOOL, OTHER_BOOL, SELECT_BOOL, SAME_INT, OTHER_INT, LESS_INT,
    LESS_EQUAL_INT, SAME_DOUBLE, OTHER_DOUBLE, LESS_DOUBLE, LESS_EQUAL_DOUBLE, ADD_INT, SUBTRACT_INT,
    MULTIPLY_INT, NEGATE_INT, MIN_INT, MAX_INT, SELECT_INT, ADD_CHECKED, SUBTRACT_CHECKED, MULTIPLY_CHECKED,
    NEGATE_CHECKED, MODULO, POWER_INT, FLOOR, CEIL, ROUND, TO_DOUBLE, ADD_DOUBLE, SUBTRACT_DOUBLE,
    MULTIPLY_DOUBLE, DIVIDE, NEGATE_DOUBLE, MIN_DOUBLE, MAX_DOUBLE, POWER_DOUBLE, LOGARITHM, SELECT_DOUBLE,
    KEEP_MASK
};

using Byte = std::uint8_t;
using Int = std::int32_t;

// Integers are computed in 64 bits, or without a sign where they wrap: no operation is undefined.
Int wrapped(std::uint32_t value) { return static_cast<Int>(value); }

struct Checked {
    std::int64_t value;
    bool fits() const { return value >= INT32_MIN && value <= INT32_MAX; }
};

Checked integer_power(Int base, Int exponent) {
    constexpr Checked TOO_LARGE{std::numeric_limits<std::int64_t>::max()};
    if (exponent < 0) return TOO_LARGE;
    if (base == 0 || base == 1) return {exponent == 0 ? 1 : base};
    if (base == -1) return {exponent % 2 == 0 ? 1 : -1};
    if (exponent > 31) return TOO_LARGE;
    std::int64_t result = 1;
    for (; exponent > 0; exponent--) {
        result *= base;
        if (!Checked{result}.fits()) return TOO_LARGE;
    }
    return {result};
}

double round_half_up(double x) {
    if (x != x) return 0.0;
    double below = std::floor(x);
    return x - below >= 0.5 ? below + 1.0 : below;
}

static_assert(std::endian::native == std::endian::little);

// The bits of bytes that are 0 or 1, the first byte lowest.
Mask packed(const Byte* bytes) {
    Mask mask;
    for (int i = 0; i < Mask::PARTS; i++) {
        Word part = 0;
        for (int j = 0; j < 8; j++) {
            Word eight;
            std::memcpy(&eight, bytes + 64 * i + 8 * j, 8);
            // Behind the last state there may be anything.
            eight &= 0x0101010101010101u;
            part |= (eight * 0x0102040810204080u >> 56) << (8 * j);
        }
        mask.bits[i] = part;
    }
    return mask;
}

template <class To, class From, class Function>
void each(To* to, const From* from, int count, Function function) {
    for (int i = 0; i < count; i++) to[i] = static_cast<To>(function(from[i]));
}

template <class To, class From, class Function>
void each(To* to, const From* a, const From* b, int count, Function function) {
    for (int i = 0; i < count; i++) to[i] = static_cast<To>(function(a[i], b[i]));
}

template <class Value>
void select(Value* to, const Byte* which, const Value* a, const Value* b, int count) {
    for (int i = 0; i < count; i++) to[i] = which[i] ? a[i] : b[i];
}

// condition: for which states a missing value matters; null for all.
template <class Function>
void checked(Int* to, int count, const Byte* condition, Byte* failed, Function function) {
    for (int i = 0; i < count; i++) {
        Checked found = function(i);
        bool fits = found.fits();
        to[i] = fits ? static_cast<Int>(found.value) : 0;
        failed[i] |= static_cast<Byte>(!fits && (condition == nullptr || condition[i]));
    }
}

Checked whole(double value) {
    if (!(value >= INT32_MIN && value <= INT32_MAX)) return {std::numeric_limits<std::int64_t>::max()};
    return {static_cast<std::int64_t>(value)};
}

}  // namespace

Machine::Machine(const PgCode& code, int banks, int masks)
    : code_(code),
      registers_(code.registers),
      constants_(code.constants),
      values_((constants_ + banks * registers_) * BLOCK),
      masks_(masks) {
    for (Int i = 0; i < code.constants; i++) {
        double value = code.constant_values[i];
        double* place = to(0, -1 - i);
        for (int lane = 0; lane < BLOCK; lane++) {
            if (code.constant_kinds[i] == 0) reinterpret_cast<Byte*>(place)[lane] = value != 0.0;
            if (code.constant_kinds[i] == 1) reinterpret_cast<Int*>(place)[lane] = static_cast<Int>(value);
            if (code.constant_kinds[i] == 2) place[lane] = value;
        }
    }
}

void Machine::run(int begin, int end, const Word* states, int count, int bank, Byte* failed) {
    for (int place = begin; place < end; place++) {
        const Int* row = code_.instructions + 5 * Index{place};
        auto bytes = [&](int operand) { return bools(bank, row[operand]); };
        auto numbers = [&](int operand) { return ints(bank, row[operand]); };
        auto reals = [&](int operand) { return doubles(bank, row[operand]); };
        auto condition = [&] { return row[4] == NO_REGISTER ? nullptr : bools(bank, row[4]); };
        if (row[0] == KEEP_MASK) {
            masks_[row[1]] = packed(bytes(2));
            continue;
        }
        double* result = to(bank, row[1]);
        Byte* to_bytes = reinterpret_cast<Byte*>(result);
        Int* to_ints = reinterpret_cast<Int*>(result);
        switch (row[0]) {
            case LOAD_BOOL:
            case LOAD_INT: {
                const Int* field = code_.fields + 4 * Index{row[2]};
                Word mask = (Word{1} << field[2]) - 1;
                const Word* word = states + field[0];
                int stride = code_.words, shift = field[1];
                Int low = field[3];
                if (row[0] == LOAD_BOOL)
                    for (int i = 0; i < count; i++) to_bytes[i] = static_cast<Byte>(word[i * stride] >> shift & 1);
                else
                    for (int i = 0; i < count; i++) {
                        auto value = static_cast<std::uint32_t>(word[i * stride] >> shift & mask);
                        to_ints[i] = wrapped(value + static_cast<std::uint32_t>(low));
                    }
                break;
            }
            case NOT: each(to_bytes, bytes(2), count, [](Byte a) { return a ^ 1; }); break;
            case AND: each(to_bytes, bytes(2), bytes(3), count, [](Byte a, Byte b) { return a & b; }); break;
            case OR: each(to_bytes, bytes(2), bytes(3), count, [](Byte a, Byte b) { return a | b; }); break;
            case SAME_BOOL:
                each(to_bytes, bytes(2), bytes(3), count, [](Byte a, Byte b) { return a ^ b ^ 1; });
                break;
            case OTHER_BOOL: each(to_bytes, bytes(2), bytes(3), count, [](Byte a, Byte b) { return a ^ b; }); break;
            case SELECT_BOOL: select(to_bytes, bytes(2), bytes(3), bytes(4), count); break;
            case SAME_INT: each(to_bytes, numbers(2), numbers(3), count, [](Int a, Int b) { return a == b; }); break;
            case OTHER_INT: each(to_bytes, numbers(2), numbers(3), count, [](Int a, Int b) { return a != b; }); break;
            case LESS_INT: each(to_bytes, numbers(2), numbers(3), count, [](Int a, Int b) { return a < b; }); break;
            case LESS_EQUAL_INT:
                each(to_bytes, numbers(2), numbers(3), count, [](Int a, Int b) { return a <= b; });
                break;
            case SAME_DOUBLE: each(to_bytes, reals(2), reals(3), count, arithmetic::same_double); break;
            case OTHER_DOUBLE:
                each(to_bytes, reals(2), reals(3), count, [](double a, double b) { return !arithmetic::same_double(a, b); });
                break;
            case LESS_DOUBLE:
                each(to_bytes, reals(2), reals(3), count, [](double a, double b) { return a < b; });
                break;
            case LESS_EQUAL_DOUBLE:
                each(to_bytes, reals(2), reals(3), count, [](double a, double b) { return a <= b; });
                break;
            case ADD_INT:
                each(to_ints, numbers(2), numbers(3), count,
                     [](std::uint32_t a, std::uint32_t b) { return wrapped(a + b); });
                break;
            case SUBTRACT_INT:
                each(to_ints, numbers(2), numbers(3), count,
                     [](std::uint32_t a, std::uint32_t b) { return wrapped(a - b); });
                break;
            case MULTIPLY_INT:
                each(to_ints, numbers(2), numbers(3), count,
                     [](std::uint32_t a, std::uint32_t b) { return wrapped(a * b); });
                break;
            case NEGATE_INT: each(to_ints, numbers(2), count, [](std::uint32_t a) { return wrapped(0u - a); }); break;
            case MIN_INT:
                each(to_ints, numbers(2), numbers(3), count, [](Int a, Int b) { return std::min(a, b); });
                break;
            case MAX_INT:
                each(to_ints, numbers(2), numbers(3), count, [](Int a, Int b) { return std::max(a, b); });
                break;
            case SELECT_INT: select(to_ints, bytes(2), numbers(3), numbers(4), count); break;
            case ADD_CHECKED:
                checked(to_ints, count, condition(), failed, [a = numbers(2), b = numbers(3)](int i) {
                    return Checked{std::int64_t{a[i]} + b[i]};
                });
                break;
            case SUBTRACT_CHECKED:
                checked(to_ints, count, condition(), failed, [a = numbers(2), b = numbers(3)](int i) {
                    return Checked{std::int64_t{a[i]} - b[i]};
                });
                break;
            case MULTIPLY_CHECKED:
                checked(to_ints, count, condition(), failed, [a = numbers(2), b = numbers(3)](int i) {
                    return Checked{std::int64_t{a[i]} * b[i]};
                });
                break;
            case NEGATE_CHECKED:
                checked(to_ints, count, condition(), failed,
                        [a = numbers(2)](int i) { return Checked{-std::int64_t{a[i]}}; });
                break;
            case MODULO:
                checked(to_ints, count, condition(), failed, [a = numbers(2), b = numbers(3)](int i) {
                    if (b[i] <= 0) return Checked{std::numeric_limits<std::int64_t>::max()};
                    Int rest = a[i] % b[i];
                    return Checked{rest < 0 ? rest + b[i] : rest};
                });
                break;
            case POWER_INT:
                checked(to_ints, count, condition(), failed,
                        [a = numbers(2), b = numbers(3)](int i) { return integer_power(a[i], b[i]); });
                break;
            case FLOOR:
                checked(to_ints, count, condition(), failed, [a = reals(2)](int i) { return whole(std::floor(a[i])); });
                break;
            case CEIL:
                checked(to_ints, count, condition(), failed, [a = reals(2)](int i) { return whole(std::ceil(a[i])); });
                break;
            case ROUND:
                checked(to_ints, count, condition(), failed,
                        [a = reals(2)](int i) { return whole(round_half_up(a[i])); });
                break;
            case TO_DOUBLE: each(result, numbers(2), count, [](Int a) { return a; }); break;
            case ADD_DOUBLE: each(result, reals(2), reals(3), count, [](double a, double b) { return a + b; }); break;
            case SUBTRACT_DOUBLE:
                each(result, reals(2), reals(3), count, [](double a, double b) { return a - b; });
                break;
            case MULTIPLY_DOUBLE:
                each(result, reals(2), reals(3), count, [](double a, double b) { return a * b; });
                break;
            case DIVIDE: each(result, reals(2), reals(3), count, [](double a, double b) { return a / b; }); break;
            case NEGATE_DOUBLE: each(result, reals(2), count, [](double a) { return -a; }); break;
            case MIN_DOUBLE: each(result, reals(2), reals(3), count, arithmetic::least); break;
            case MAX_DOUBLE:
                each(result, reals(2), reals(3), count, arithmetic::greatest);
                break;
            case POWER_DOUBLE: each(result, reals(2), reals(3), count, arithmetic::power); break;
            case LOGARITHM: each(result, reals(2), reals(3), count, arithmetic::logarithm_to_base); break;
            case SELECT_DOUBLE: select(result, bytes(2), reals(3), reals(4), count); break;
            default: break;
        }
    }
}

}  // namespace prism_gpu

// Evaluates one expression in many states.
//
// kind: 0 Boolean, 1 integer, 2 double; results are doubles, 0 and 1 of Booleans. Returns the first state
// in which it has no value, -1 if there is none, -2 for lack of memory.
extern "C" std::int64_t pg_explore_evaluate(
    const PgCode* code, std::int32_t end, std::int32_t where, std::int32_t kind, const std::uint64_t* states,
    std::int64_t count, double* values, std::int32_t threads) {
    using namespace prism_gpu;
    constexpr Index PIECE = 64 * BLOCK;
    std::atomic<Index> failing{count};
    std::atomic<bool> no_memory{false};
    auto evaluate = [&](Index piece) {
        Machine machine(*code, 1, 0);
        std::uint8_t failed[BLOCK];
        Index last = std::min(count, (piece + 1) * PIECE);
        for (Index first = piece * PIECE; first < last; first += BLOCK) {
            int here = static_cast<int>(std::min<Index>(BLOCK, last - first));
            std::fill_n(failed, here, std::uint8_t{0});
            machine.run(0, end, states + first * code->words, here, 0, failed);
            for (int i = 0; i < here; i++) {
                if (kind == 0) values[first + i] = machine.bools(0, where)[i];
                if (kind == 1) values[first + i] = machine.ints(0, where)[i];
                if (kind == 2) values[first + i] = machine.doubles(0, where)[i];
                if (!failed[i]) continue;
                Index before = failing;
                while (first + i < before && !failing.compare_exchange_weak(before, first + i)) {
                }
                break;
            }
        }
    };
    Team(threads).share((count + PIECE - 1) / PIECE, [&](Index piece) {
        try {
            evaluate(piece);
        } catch (const std::bad_alloc&) {
            no_memory = true;
        }
    });
    return no_memory ? -2 : failing < count ? failing.load() : -1;
}
