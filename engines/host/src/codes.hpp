// A matrix whose values are numbers of a table, one or two bytes beside each column.
#pragma once

#include "system.hpp"

// `HostCodes` of engines/host/sweeps.py.
struct PgCodes {
    const void* codes;      // one an entry: bytes, or 16 bits where they are wide
    const double* numbers;  // the value that each code stands for
    std::int32_t wide;
};

namespace prism_gpu {

template <class Matrix, class Code>
struct Coded : Matrix {
    const Code* codes;
    const double* numbers;

    double value(Index entry) const { return numbers[codes[entry]]; }
};

// Calls a generic function with the system in the types that its matrix and its codes have.
template <class Function>
auto with_types(const PgSystem& given, const PgCodes* coded, Function function) {
    return with_types(given, [&]<class Matrix>(const System<Matrix>& system) {
        auto call = [&]<class Code>(const Code* codes) {
            return function(System<Coded<Matrix, Code>>{
                {system.matrix, codes, coded->numbers}, system.groups, system.states, system.offset, system.omega,
                system.minimise});
        };
        if (!coded) return function(system);
        if (coded->wide) return call(static_cast<const std::uint16_t*>(coded->codes));
        return call(static_cast<const std::uint8_t*>(coded->codes));
    });
}

}  // namespace prism_gpu
