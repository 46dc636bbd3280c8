// Calls functions of the compiled library again, with recorded arguments, under a sanitizer: each array
// is a block of its own of exactly its size. Ends with 1 if a call gives something else than recorded.
//
// Its first argument is the file of calls that tests/engines/host_calls.py writes; so is `functions.inc`,
// a line `FUNCTION(name, result, arguments…)` for each function. Those that are not linked are left out.
// To see that the sanitizers notice it, a second argument has calls go wrong: `short` cuts the last eight
// bytes off each block, and `twice` makes each call on two threads at once.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#define FUNCTION(name, result, ...) extern "C" [[gnu::weak]] result name(__VA_ARGS__);
#include "functions.inc"
#undef FUNCTION

namespace {

using Number = std::int64_t;

enum class Kind : Number { bits, null, block, handle, new_handle };

struct Pointer {
    Number where, block;
};

struct Block {
    Number size, checksum_after;
    std::vector<Pointer> pointers;
    std::unique_ptr<char[]> bytes;
};

struct Argument {
    Kind kind;
    Number bits;
};

struct Call {
    Number function, result;
    std::vector<Block> blocks;
    std::vector<Argument> arguments;
};

class Reader {
   public:
    // cut: how many bytes of each block are missing.
    Reader(const char* path, Number cut) : file_(path, std::ios::binary), cut_(cut) {}

    bool more() { return file_.peek() != std::ifstream::traits_type::eof(); }

    Call call() {
        Call call;
        call.function = number();
        call.blocks.resize(number());
        for (Block& block : call.blocks) {
            block.size = number();
            block.checksum_after = number();
            block.pointers.resize(number());
            for (Pointer& pointer : block.pointers) pointer = {number(), number()};
            Number kept = std::max<Number>(block.size - cut_, 0);
            block.bytes.reset(new char[kept]);
            read(block.bytes.get(), kept);
            file_.ignore(block.size - kept);
        }
        call.arguments.resize(number());
        for (Argument& argument : call.arguments) argument = {static_cast<Kind>(number()), number()};
        call.result = number();
        return call;
    }

   private:
    Number number() {
        Number found;
        read(reinterpret_cast<char*>(&found), sizeof found);
        return found;
    }

    void read(char* into, Number bytes) {
        if (file_.read(into, bytes)) return;
        std::fprintf(stderr, "the file of calls is cut off\n");
        std::exit(2);
    }

    std::ifstream file_;
    Number cut_;
};

// What functions made and others take, by the address that it had where it was recorded.
std::map<Number, void*> handles;

template <class Type>
Type given(Call& call, std::size_t which) {
    Argument argument = call.arguments[which];
    if constexpr (std::is_pointer_v<Type>) {
        if (argument.kind == Kind::block) return call.blocks[argument.bits].bytes.get();
        if (argument.kind == Kind::handle) return handles.at(argument.bits);
        if (argument.kind == Kind::new_handle) return &handles[argument.bits];
        return nullptr;
    } else if constexpr (std::is_floating_point_v<Type>) {
        return std::bit_cast<double>(argument.bits);
    } else {
        return static_cast<Type>(argument.bits);
    }
}

template <class Result, class... Types>
Number made(Result (*function)(Types...), Call& call) {
    return [&]<std::size_t... which>(std::index_sequence<which...>) -> Number {
        if constexpr (std::is_void_v<Result>) {
            function(given<Types>(call, which)...);
            return 0;
        } else if constexpr (std::is_floating_point_v<Result>) {
            return std::bit_cast<Number>(function(given<Types>(call, which)...));
        } else {
            return function(given<Types>(call, which)...);
        }
    }(std::index_sequence_for<Types...>());
}

struct Function {
    const char* name;
    bool linked;
    Number (*call)(Call&);
};

const Function functions[] = {
#define FUNCTION(name, result, ...) {#name, name != nullptr, [](Call& call) { return made(name, call); }},
#include "functions.inc"
#undef FUNCTION
};

// That of zlib.
Number checksum(const char* bytes, Number size) {
    static const auto table = [] {
        std::array<std::uint32_t, 256> made;
        for (std::uint32_t i = 0; i < made.size(); i++) {
            std::uint32_t sum = i;
            for (int bit = 0; bit < 8; bit++) sum = sum >> 1 ^ (sum & 1 ? 0xEDB88320u : 0u);
            made[i] = sum;
        }
        return made;
    }();
    std::uint32_t sum = ~0u;
    for (Number i = 0; i < size; i++) sum = sum >> 8 ^ table[(sum ^ bytes[i]) & 0xFF];
    return static_cast<std::uint32_t>(~sum);
}

void set_pointers(Call& call, bool clear) {
    for (Block& block : call.blocks)
        for (Pointer pointer : block.pointers) {
            void* to = clear ? nullptr : call.blocks[pointer.block].bytes.get();
            std::memcpy(block.bytes.get() + pointer.where, &to, sizeof to);
        }
}

// Whether the call gives what was recorded. What another thread makes of it meanwhile is waited for.
bool repeated(Call& call, std::thread& other) {
    const Function& function = functions[call.function];
    bool same = function.call(call) == call.result;
    if (other.joinable()) other.join();
    if (!same) std::fprintf(stderr, "%s returns something else than recorded\n", function.name);
    if (call.arguments.back().kind == Kind::new_handle) return same;
    set_pointers(call, true);
    for (std::size_t i = 0; i < call.blocks.size(); i++) {
        const Block& block = call.blocks[i];
        if (block.checksum_after < 0) continue;  // what threads leave in their room
        if (checksum(block.bytes.get(), block.size) == block.checksum_after) continue;
        std::fprintf(
            stderr, "%s leaves something else than recorded in block %zu of %lld bytes\n", function.name, i,
            static_cast<long long>(block.size));
        same = false;
    }
    return same;
}

}  // namespace

int main(int count, char** arguments) {
    std::string_view wrong = count > 2 ? arguments[2] : "";
    Reader reader(arguments[1], wrong == "short" ? 8 : 0);
    std::vector<Call> kept;  // what was made reads the arguments of the call that made it
    std::set<Number> called;
    long calls = 0, different = 0;
    while (reader.more()) {
        Call call = reader.call();
        const Function& function = functions[call.function];
        if (!function.linked) continue;
        called.insert(call.function);
        calls++;
        set_pointers(call, false);
        std::thread other;
        if (wrong == "twice") other = std::thread([&] { function.call(call); });
        different += !repeated(call, other);
        if (call.arguments.back().kind == Kind::new_handle) kept.push_back(std::move(call));
    }
    std::printf("%ld calls of %zu functions, %ld different\n", calls, called.size(), different);
    return different > 0;
}
