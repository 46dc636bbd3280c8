// What Jacobi's method divides a row of x = A x + b by.

#define ROUNDING_OF_A_SUM 1e-11

// 1 - a_ii, given a_ii and the sum of the other entries, which is the same where the row adds up to
// 1 and which no rounding of a_ii reaches. A state that only loops has nothing to divide by: 1.
__device__ double pivot_of(double own, double others)
{
    bool whole = own != 0.0 && fabs(others + own - 1.0) <= ROUNDING_OF_A_SUM;
    double pivot = whole ? others : 1.0 - own;
    return pivot > 0.0 ? pivot : 1.0;
}
