// Root-mean-square normalization and quantization per token in one pass over memory and one over the cache:
//     y = x * weight / sqrt(mean(x^2) + epsilon),   y[t, c] ~ scale[t] * code[t, c].
// The normalization only scales a token, so it moves into the token's scale: codes are those of x * weight.
#include "group_quantize.cuh"

namespace qw {

struct CodeInt8 {
    static constexpr float LARGEST = 127.f;
    static QW_INLINE uint8_t code(float x) { return uint8_t(clamp(__float2int_rn(x), -127, 127)); }
};
struct CodeE4M3 {
    static constexpr float LARGEST = 448.f;
    static QW_INLINE uint8_t code(float x) { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3); }
};

constexpr int NORM_WARPS = 8;

// The result of all warps, for every thread.
template <class Operation> QW_INLINE float reduce_block(float value, float* shared) {
    value = reduce_lanes<Operation>(value);
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    float all = shared[0];
    for (int w = 1; w < NORM_WARPS; ++w) all = Operation::of(all, shared[w]);
    return all;
}

// One block a token; `columns` is a multiple of eight.
template <class Code, class T>
QW_INLINE void normalize(const T* x, const T* weight, uint8_t* codes, float* scales, int columns, float epsilon) {
    __shared__ float squares_of[NORM_WARPS], largest_of[NORM_WARPS];
    const long long row = (long long)blockIdx.x * columns;
    float squares = 0.f, largest = 0.f, v[EIGHT], w[EIGHT];
    for (int at = threadIdx.x * EIGHT; at < columns; at += 32 * NORM_WARPS * EIGHT) {
        load_eight(x + row + at, v);
        load_eight(weight + at, w);
#pragma unroll
        for (int i = 0; i < EIGHT; ++i) {
            squares += v[i] * v[i];
            largest = fmaxf(largest, fabsf(v[i] * w[i]));
        }
    }
    squares = reduce_block<Sum>(squares, squares_of);
    const Fit fit = fit_of(reduce_block<Max>(largest, largest_of) / Code::LARGEST, 0);
    if (threadIdx.x == 0) scales[blockIdx.x] = fit.scale / sqrtf(squares / columns + epsilon);
    for (int at = threadIdx.x * EIGHT; at < columns; at += 32 * NORM_WARPS * EIGHT) {
        load_eight(x + row + at, v);
        load_eight(weight + at, w);
        Pack<uint8_t, EIGHT> pack;
#pragma unroll
        for (int i = 0; i < EIGHT; ++i) pack.at[i] = Code::code(v[i] * w[i] * fit.inverse);
        store(codes + row + at, pack);
    }
}

}  // namespace qw

#define NORM(NAME, CODE, T)                                                                                      \
    QW_KERNEL(256) norm_quantize_##NAME(const T* x, const T* weight, uint8_t* codes, float* scales, int columns, \
                                        float epsilon) {                                                         \
        qw::normalize<qw::CODE>(x, weight, codes, scales, columns, epsilon);                                     \
    }
NORM(int8_f16, CodeInt8, __half)
NORM(int8_bf16, CodeInt8, __nv_bfloat16)
NORM(e4m3_f16, CodeE4M3, __half)
NORM(e4m3_bf16, CodeE4M3, __nv_bfloat16)
