// The instructions whose operands lie across the lanes of a warp, each by itself: 32 threads, registers in and registers out.
#include "../../../kernels/gpu/cuda/portable.cuh"

using namespace qw;

// Multiplies what the registers of each thread hold, four of a and two of b.
template <class T, class Multiply> QW_INLINE void product(T* out, const uint32_t* a, const uint32_t* b, Multiply multiply) {
    Registers4 left;
    Registers2 right;
    for (int i = 0; i < 4; ++i) left[i] = a[4 * threadIdx.x + i];
    for (int i = 0; i < 2; ++i) right[i] = b[2 * threadIdx.x + i];
    T c[4] = {};
    multiply(c, left, right);
    for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = c[i];
}

QW_KERNEL(32) fragments_f16(float* out, const uint32_t* a, const uint32_t* b) { product(out, a, b, multiply_f16); }
QW_KERNEL(32) fragments_s8(int* out, const uint32_t* a, const uint32_t* b) { product(out, a, b, multiply_s8); }
QW_KERNEL(32) fragments_e4m3(float* out, const uint32_t* a, const uint32_t* b) { product(out, a, b, multiply_e4m3); }

// x: 16 rows of 16 halves.
QW_KERNEL(32) matrices(uint32_t* out, const uint32_t* x) {
    __shared__ __align__(16) uint32_t tile[16 * 8];
    for (int i = threadIdx.x; i < 16 * 8; i += 32) tile[i] = x[i];
    __syncthreads();
    Registers4 r;
    load_matrices(r, tile + threadIdx.x % 16 * 8 + threadIdx.x / 16 * 4);
    for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = r[i];
}
