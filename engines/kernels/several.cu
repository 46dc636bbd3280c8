// Several devices: one decision on convergence.

// Writes the largest change of a sweep over all devices to where this device looks it up; `slots` holds
// the addresses of each device's own slots. One thread.
extern "C" __global__ void merge_slots(const long long* __restrict__ slots, int devices, int sweep,
                                       double* merged)
{
    double largest = 0.0;
    for (int device = 0; device < devices; device++) {
        double change = ((const volatile double*)slots[device])[sweep];
        if (change > largest) largest = change;
    }
    merged[sweep] = largest;
}
