// The gated activation of a transformer's MLP with quantization per token:
//     y = silu(gate) * up,   y[t, c] ~ scale[t] * code[t, c],   silu(g) = g / (1 + exp(-g)).
#include "row_codes.cuh"

namespace qw {

template <class T> QW_INLINE void load_gated(const T* gate, const T* up, long long at, float (&v)[EIGHT]) {
    float g[EIGHT];
    load_eight(gate + at, g);
    load_eight(up + at, v);
#pragma unroll
    for (int i = 0; i < EIGHT; ++i) v[i] *= g[i] / (1.f + __expf(-g[i]));
}

// One block a token; `columns` is a multiple of eight.
template <class Code, class T>
QW_INLINE void gate_quantize(const T* gate, const T* up, uint8_t* codes, float* scales, int columns) {
    __shared__ float largest_of[ROW_WARPS];
    const long long row = (long long)blockIdx.x * columns;
    float largest = 0.f, v[EIGHT];
    for (int at = threadIdx.x * EIGHT; at < columns; at += ROW_STEP) {
        load_gated(gate, up, row + at, v);
#pragma unroll
        for (int i = 0; i < EIGHT; ++i) largest = fmaxf(largest, fabsf(v[i]));
    }
    const Fit fit = fit_of(reduce_block<Max>(largest, largest_of) / Code::LARGEST, 0);
    if (threadIdx.x == 0) scales[blockIdx.x] = fit.scale;
    for (int at = threadIdx.x * EIGHT; at < columns; at += ROW_STEP) {
        load_gated(gate, up, row + at, v);
        store_codes<Code>(codes + row + at, v, fit.inverse);
    }
}

// Eight values a thread.
template <class T> QW_INLINE void gate_plainly(const T* gate, const T* up, T* out, long long count) {
    const long long at = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * EIGHT;
    if (at >= count) return;
    float v[EIGHT];
    load_gated(gate, up, at, v);
    store_eight(out + at, v);
}

}  // namespace qw

#define GATE(NAME, CODE, T)                                                                                     \
    QW_KERNEL(256) gate_quantize_##NAME(const T* gate, const T* up, uint8_t* codes, float* scales, int columns) { \
        qw::gate_quantize<qw::CODE>(gate, up, codes, scales, columns);                                          \
    }
#define PLAIN_GATE(NAME, T)                                                                                     \
    QW_KERNEL(256) gate_##NAME(const T* gate, const T* up, T* out, long long count) {                           \
        qw::gate_plainly(gate, up, out, count);                                                                 \
    }
GATE(int8_f16, CodeInt8, __half)
GATE(int8_bf16, CodeInt8, __nv_bfloat16)
GATE(e4m3_f16, CodeE4M3, __half)
GATE(e4m3_bf16, CodeE4M3, __nv_bfloat16)
PLAIN_GATE(f16, __half)
PLAIN_GATE(bf16, __nv_bfloat16)
