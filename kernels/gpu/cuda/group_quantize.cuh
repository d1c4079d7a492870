// Quantization in groups of consecutive values that share a scale: what integer_groups.cu and float8_groups.cu have in common.
//
// A Code says how a group's range becomes a scale and a zero point, how a value becomes a code and back, and how eight
// codes are stored.  Values must be finite.
#pragma once
#include "portable.cuh"

namespace qw {

constexpr float SMALLEST_NORMAL = 1.17549435e-38f;
constexpr int EIGHT = 8;

struct Fit {
    float scale, inverse;
    int zero;
};

// A scale that is zero or subnormal has no usable inverse: all codes are then those of zero.
QW_INLINE Fit fit_of(float scale, int zero) {
    if (!(scale >= SMALLEST_NORMAL)) return {0.f, 0.f, zero};
    return {scale, 1.f / scale, zero};
}

QW_INLINE int clamp(int x, int low, int high) { return min(max(x, low), high); }

// Eight values from a multiple of eight.
template <class T> QW_INLINE void load_eight(const T* from, float (&x)[EIGHT]) {
    constexpr int COUNT = sizeof(T) == 4 ? 4 : 8;
#pragma unroll
    for (int i = 0; i < EIGHT; i += COUNT) {
        const Pack<T, COUNT> pack = load<T, COUNT>(from + i);
#pragma unroll
        for (int j = 0; j < COUNT; ++j) x[i + j] = to_float(pack.at[j]);
    }
}

template <class T> QW_INLINE void store_eight(T* to, const float (&x)[EIGHT]) {
    constexpr int COUNT = sizeof(T) == 4 ? 4 : 8;
#pragma unroll
    for (int i = 0; i < EIGHT; i += COUNT) {
        Pack<T, COUNT> pack;
#pragma unroll
        for (int j = 0; j < COUNT; ++j) pack.at[j] = from_float<T>(x[i + j]);
        store(to + i, pack);
    }
}

// The scale and zero point of a group, found by `lanes` neighbouring lanes together; `live` lanes have values.
template <class Code, class T>
QW_INLINE Fit fit_group(const T* group, int size, int lane, int lanes, bool live) {
    float low = 0.f, high = 0.f, x[EIGHT];
    for (int at = lane * EIGHT; live && at < size; at += lanes * EIGHT) {
        load_eight(group + at, x);
#pragma unroll
        for (int i = 0; i < EIGHT; ++i) low = fminf(low, x[i]), high = fmaxf(high, x[i]);
    }
    return Code::fit(reduce_lanes<Min>(low, lanes), reduce_lanes<Max>(high, lanes));
}

// Thread t works on group t / lanes; `lanes` is a power of two up to 32, `size` a multiple of eight.
template <class Code, class T>
QW_INLINE void quantize_groups(const T* x, uint8_t* codes, float* scales, uint8_t* zeros, long long groups, int size,
                               int lanes) {
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x, group = thread / lanes;
    const int lane = int(thread % lanes);
    const bool live = group < groups;
    const Fit fit = fit_group<Code>(x + group * size, size, lane, lanes, live);
    if (!live) return;
    if (lane == 0) {
        scales[group] = fit.scale;
        if (zeros) zeros[group] = uint8_t(fit.zero);
    }
    float values[EIGHT];
    for (int at = lane * EIGHT; at < size; at += lanes * EIGHT) {
        load_eight(x + group * size + at, values);
        Code::store(codes, group * size + at, values, fit);
    }
}

// The same, and back: what the value will be after quantization.
template <class Code, class T>
QW_INLINE void fake_quantize_groups(const T* x, T* out, long long groups, int size, int lanes) {
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x, group = thread / lanes;
    const int lane = int(thread % lanes);
    const bool live = group < groups;
    const Fit fit = fit_group<Code>(x + group * size, size, lane, lanes, live);
    float values[EIGHT];
    for (int at = lane * EIGHT; live && at < size; at += lanes * EIGHT) {
        load_eight(x + group * size + at, values);
#pragma unroll
        for (int i = 0; i < EIGHT; ++i) values[i] = Code::value(Code::code(values[i], fit), fit);
        store_eight(out + group * size + at, values);
    }
}

// With a scale that is given (`scales[0]`): one thread for eight values.
template <class Code, class T>
QW_INLINE void quantize_all(const T* x, uint8_t* codes, const float* scales, long long count) {
    const long long at = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * EIGHT;
    if (at >= count) return;
    float values[EIGHT];
    load_eight(x + at, values);
    Code::store(codes, at, values, fit_of(scales[0], Code::ZERO));
}

template <class Code, class T>
QW_INLINE void dequantize_groups(const uint8_t* codes, const float* scales, const uint8_t* zeros, T* out, long long count,
                                 int size) {
    const long long at = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * EIGHT;
    if (at >= count) return;
    const long long group = at / size;
    const Fit fit = {scales[group], 0.f, zeros ? zeros[group] : Code::ZERO};
    float values[EIGHT];
    Code::load(codes, at, values, fit);
    store_eight(out + at, values);
}

}  // namespace qw

#define QW_GROUPS(CODE, NAME, T)                                                                                       \
    QW_KERNEL(256) quantize_##NAME(const T* x, uint8_t* codes, float* scales, uint8_t* zeros, long long groups,        \
                                   int size, int lanes) {                                                              \
        qw::quantize_groups<CODE>(x, codes, scales, zeros, groups, size, lanes);                                       \
    }                                                                                                                  \
    QW_KERNEL(256) fake_quantize_##NAME(const T* x, T* out, long long groups, int size, int lanes) {                   \
        qw::fake_quantize_groups<CODE>(x, out, groups, size, lanes);                                                   \
    }                                                                                                                  \
    QW_KERNEL(256) dequantize_##NAME(const uint8_t* codes, const float* scales, const uint8_t* zeros, T* out,          \
                                     long long count, int size) {                                                      \
        qw::dequantize_groups<CODE>(codes, scales, zeros, out, count, size);                                           \
    }
#define QW_STATIC(CODE, NAME, T)                                                                                       \
    QW_KERNEL(256) quantize_static_##NAME(const T* x, uint8_t* codes, const float* scales, long long count) {          \
        qw::quantize_all<CODE>(x, codes, scales, count);                                                               \
    }
#define QW_FLOATS(MACRO, CODE, NAME)                                                                                   \
    MACRO(CODE, NAME##_f32, float)                                                                                     \
    MACRO(CODE, NAME##_f16, __half)                                                                                    \
    MACRO(CODE, NAME##_bf16, __nv_bfloat16)
