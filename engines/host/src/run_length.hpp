// How many rows a run has at most: LONGEST_RUN of engines/host/run_encoding.py.
#pragma once

#include "system.hpp"

namespace prism_gpu {

constexpr Index LONGEST_RUN = 1024;

}  // namespace prism_gpu
