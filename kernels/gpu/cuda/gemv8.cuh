// The products of gemm8.cuh for up to eight rows of activations: bound by reading the weights, so that each is read once, 16
// bytes at a time, and multiplied without tensor cores.  A warp takes two outputs; its lanes share K, a multiple of 16.
#pragma once
#include "portable.cuh"

namespace qw {

constexpr int GEMV_WARPS = 4, OUTPUTS = 2, BYTES = 16;

struct FewOperands {
    const uint8_t *a, *b;       // [M, K], [N, K]
    const float *left, *right;  // [M], [N]
    const float* bias;          // [N] or null
    int m, n, k;
};

typedef Pack<uint32_t, BYTES / 4> Words;
QW_INLINE Words words_at(const uint8_t* from, bool valid) {
    return valid ? load<uint32_t, BYTES / 4>(reinterpret_cast<const uint32_t*>(from)) : Words{{0, 0, 0, 0}};
}

template <class Dot, int ROWS, class T> QW_INLINE void multiply_few(const FewOperands& o, T* out) {
    const int lane = threadIdx.x % 32, first = (blockIdx.x * GEMV_WARPS + threadIdx.x / 32) * OUTPUTS;
    typename Dot::Sum sum[OUTPUTS][ROWS] = {};
#pragma unroll(ROWS < 8 ? 2 : 1)
    for (int k = lane * BYTES; k < o.k; k += 32 * BYTES) {
        Words weights[OUTPUTS];
#pragma unroll
        for (int j = 0; j < OUTPUTS; ++j) weights[j] = words_at(o.b + (long long)(first + j) * o.k + k, first + j < o.n);
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const Words x = words_at(o.a + (long long)i * o.k + k, i < o.m);
#pragma unroll
            for (int w = 0; w < BYTES / 4; ++w) {
                const typename Dot::Part part = Dot::part(x.at[w]);
#pragma unroll
                for (int j = 0; j < OUTPUTS; ++j) Dot::add(sum[j][i], part, Dot::part(weights[j].at[w]));
            }
        }
    }
#pragma unroll
    for (int j = 0; j < OUTPUTS; ++j)
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const float all = float(reduce_lanes<Sum>(sum[j][i]));
            const int column = first + j;
            if (lane != 0 || i >= o.m || column >= o.n) continue;
            const float value = all * o.left[i] * o.right[column];
            out[(long long)i * o.n + column] = from_float<T>(o.bias ? value + o.bias[column] : value);
        }
}

}  // namespace qw

#define GEMV8(NAME, DOT, ROWS, T)                                                                                       \
    QW_KERNEL(128) gemv_##NAME(const uint8_t* a, const uint8_t* b, const float* left, const float* right,               \
                               const float* bias, T* out, int m, int n, int k) {                                        \
        qw::multiply_few<qw::DOT, ROWS>({a, b, left, right, bias, m, n, k}, out);                                       \
    }
#define GEMV8_ALL(NAME, DOT)                        \
    GEMV8(NAME##_1_f16, DOT, 1, __half)             \
    GEMV8(NAME##_1_bf16, DOT, 1, __nv_bfloat16)     \
    GEMV8(NAME##_4_f16, DOT, 4, __half)             \
    GEMV8(NAME##_4_bf16, DOT, 4, __nv_bfloat16)     \
    GEMV8(NAME##_8_f16, DOT, 8, __half)             \
    GEMV8(NAME##_8_bf16, DOT, 8, __nv_bfloat16)
