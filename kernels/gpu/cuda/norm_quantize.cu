// Root-mean-square normalization and quantization per token in one pass over memory and one over the cache:
//     y = x * weight / sqrt(mean(x^2) + epsilon),   y[t, c] ~ scale[t] * code[t, c].
// The normalization only scales a token, so it moves into the token's scale: codes are those of x * weight.  With a `delta`,
// x + delta takes the place of x and is written to `sum`: the residual stream of a transformer.
#include "row_codes.cuh"

namespace qw {

template <class T> struct Stream {
    const T *x, *delta;
    T* sum;

    // Eight values of the row that begins at `row`; the first time they are added and kept.
    QW_INLINE void first(long long at, float (&v)[EIGHT]) const {
        load_eight(x + at, v);
        if (!delta) return;
        float more[EIGHT];
        load_eight(delta + at, more);
#pragma unroll
        for (int i = 0; i < EIGHT; ++i) v[i] = to_float(from_float<T>(v[i] + more[i]));
        store_eight(sum + at, v);
    }
    QW_INLINE void again(long long at, float (&v)[EIGHT]) const { load_eight(delta ? sum + at : x + at, v); }
};

// `columns` is a multiple of eight.
template <class Code, class T>
QW_INLINE void normalize(const Stream<T>& x, const T* weight, uint8_t* codes, float* scales, int columns, float epsilon) {
    __shared__ float squares_of[ROW_WARPS], largest_of[ROW_WARPS];
    const long long row = (long long)blockIdx.x * columns;
    float squares = 0.f, largest = 0.f, v[EIGHT], w[EIGHT];
    for (int at = threadIdx.x * EIGHT; at < columns; at += ROW_STEP) {
        x.first(row + at, v);
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
    for (int at = threadIdx.x * EIGHT; at < columns; at += ROW_STEP) {
        x.again(row + at, v);
        load_eight(weight + at, w);
#pragma unroll
        for (int i = 0; i < EIGHT; ++i) v[i] *= w[i];
        store_codes<Code>(codes + row + at, v, fit.inverse);
    }
}

// The same without codes.
template <class T> QW_INLINE void normalize_plainly(const Stream<T>& x, const T* weight, T* out, int columns, float epsilon) {
    __shared__ float squares_of[ROW_WARPS];
    const long long row = (long long)blockIdx.x * columns;
    float squares = 0.f, v[EIGHT], w[EIGHT];
    for (int at = threadIdx.x * EIGHT; at < columns; at += ROW_STEP) {
        x.first(row + at, v);
#pragma unroll
        for (int i = 0; i < EIGHT; ++i) squares += v[i] * v[i];
    }
    const float factor = 1.f / sqrtf(reduce_block<Sum>(squares, squares_of) / columns + epsilon);
    for (int at = threadIdx.x * EIGHT; at < columns; at += ROW_STEP) {
        x.again(row + at, v);
        load_eight(weight + at, w);
#pragma unroll
        for (int i = 0; i < EIGHT; ++i) v[i] *= factor * w[i];
        store_eight(out + row + at, v);
    }
}

}  // namespace qw

#define NORM(NAME, CODE, T)                                                                                      \
    QW_KERNEL(256) norm_quantize_##NAME(const T* x, const T* delta, T* sum, const T* weight, uint8_t* codes,     \
                                        float* scales, int columns, float epsilon) {                             \
        qw::normalize<qw::CODE, T>({x, delta, sum}, weight, codes, scales, columns, epsilon);                    \
    }
#define PLAIN_NORM(NAME, T)                                                                                      \
    QW_KERNEL(256) norm_##NAME(const T* x, const T* delta, T* sum, const T* weight, T* out, int columns,         \
                               float epsilon) {                                                                  \
        qw::normalize_plainly<T>({x, delta, sum}, weight, out, columns, epsilon);                                \
    }
NORM(int8_f16, CodeInt8, __half)
NORM(int8_bf16, CodeInt8, __nv_bfloat16)
NORM(e4m3_f16, CodeE4M3, __half)
NORM(e4m3_bf16, CodeE4M3, __nv_bfloat16)
PLAIN_NORM(f16, __half)
PLAIN_NORM(bf16, __nv_bfloat16)
