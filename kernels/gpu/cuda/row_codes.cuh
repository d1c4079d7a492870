// Rows of activations to codes with one scale each: what norm_quantize.cu and gate_quantize.cu share.  One block a row.
#pragma once
#include "group_quantize.cuh"

namespace qw {

constexpr int ROW_WARPS = 8, ROW_STEP = 32 * ROW_WARPS * EIGHT;

struct CodeInt8 {
    static constexpr float LARGEST = 127.f;
    static QW_INLINE uint8_t code(float x) { return uint8_t(clamp(__float2int_rn(x), -127, 127)); }
};
struct CodeE4M3 {
    static constexpr float LARGEST = 448.f;
    static QW_INLINE uint8_t code(float x) { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3); }
};

// The result of all warps, for every thread.
template <class Operation> QW_INLINE float reduce_block(float value, float* shared) {
    value = reduce_lanes<Operation>(value);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    float all = shared[0];
    for (int w = 1; w < ROW_WARPS; ++w) all = Operation::of(all, shared[w]);
    return all;
}

template <class Code> QW_INLINE void store_codes(uint8_t* to, const float (&v)[EIGHT], float inverse) {
    Pack<uint8_t, EIGHT> pack;
#pragma unroll
    for (int i = 0; i < EIGHT; ++i) pack.at[i] = Code::code(v[i] * inverse);
    store(to, pack);
}

}  // namespace qw
