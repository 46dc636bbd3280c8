// PRISM's measure of a sweep: the largest absolute or relative change.
#pragma once

#include <cmath>

namespace prism_gpu {

struct Change {
    bool absolute;
    double largest = 0.0;

    void see(double before, double after) { see_share(std::fabs(after - before), absolute ? 1.0 : std::fabs(before)); }

    // Comparisons with NaN fail, so that 0/0 and infinity less infinity count as no change. The product
    // only spares divisions: what is kept is the largest rounded quotient, in whichever order they come.
    void see_share(double change, double scale) {
        if (change >= largest * scale && change > 0.0) {
            double relative = change / scale;
            if (relative > largest) largest = relative;
        }
    }
};

}  // namespace prism_gpu
