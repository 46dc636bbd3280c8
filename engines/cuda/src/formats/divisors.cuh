// What each row's sum is divided by, where the scale of the rows is kept apart from their entries:
// the reciprocal of each row's divisor, or a code a row and the reciprocals of the distinct ones.

#define DIVIDED
#define DIVISOR_PARAMETERS \
    const unsigned short* __restrict__ divisor_codes, const double* __restrict__ reciprocals
#define DIVISORS divisor_codes, reciprocals

struct Divisors {
    const unsigned short* codes;
    const double* reciprocals;
};

__device__ OFFSET divisor_place(const Divisors& divisors, OFFSET number)
{
    return divisors.codes ? (OFFSET)__ldg(divisors.codes + number) : number;
}

__device__ double scale_at(const Divisors& divisors, OFFSET place)
{
    return divisors.reciprocals ? __ldg(divisors.reciprocals + place) : 1.0;
}
