// FP4 (E2M1) in blocks: MXFP4 (32 values, a power of two for scale) and NVFP4 (16 values, an E4M3 scale times one float for
// the tensor).  Two codes in a byte, the first in the low bits; no code is minus zero.
#include "group_quantize.cuh"

namespace qw {

// The nearest of 0, .5, 1, 1.5, 2, 3, 4, 6 with its sign in bit 3; halves go to the even code, more than 6 is 6.
QW_INLINE uint32_t e2m1_code(float x) {
    const float a = fabsf(x);
    const uint32_t code =
        (a > .25f) + (a >= .75f) + (a > 1.25f) + (a >= 1.75f) + (a > 2.5f) + (a >= 3.5f) + (a > 5.f);
    return code && x < 0.f ? code | 8 : code;
}
QW_INLINE float e2m1_value(uint32_t code) {
    const int exponent = code >> 1 & 3, mantissa = code & 1;
    const float magnitude = exponent ? (1.f + .5f * mantissa) * float(1 << (exponent - 1)) : .5f * mantissa;
    return code & 8 ? -magnitude : magnitude;
}

// 2^(byte - 127); byte 0 is subnormal.
QW_INLINE float power_of_two(int byte) { return __uint_as_float(byte ? unsigned(byte) << 23 : 0x00400000u); }

struct MxFp4 {
    static constexpr int SIZE = 32;
    static QW_INLINE int scale_code(float largest, float) {
        return clamp(int(__float_as_uint(largest) >> 23) - 2, 0, 254);  // 6 = 1.5 * 2^2
    }
    static QW_INLINE float scale(int code, float) { return power_of_two(code); }
};

struct NvFp4 {
    static constexpr int SIZE = 16;
    static QW_INLINE int scale_code(float largest, float tensor) {
        const float wanted = largest / 6.f / tensor;
        const int code = __nv_cvt_float_to_fp8(wanted, __NV_SATFINITE, __NV_E4M3);
        return code == 0 && largest > 0.f ? 1 : code;
    }
    static QW_INLINE float scale(int code, float tensor) {
        return __half2float(__half(__nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t(code), __NV_E4M3))) * tensor;
    }
};

// Eight values a thread; a block's threads are neighbouring lanes.
template <class Format, class T>
QW_INLINE void quantize_fp4(const T* x, uint8_t* codes, uint8_t* scales, const float* tensor, long long count) {
    const long long at = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * EIGHT;
    const float shared = tensor ? tensor[0] : 1.f;
    float values[EIGHT] = {}, largest = 0.f;
    if (at < count) load_eight(x + at, values);
#pragma unroll
    for (int i = 0; i < EIGHT; ++i) largest = fmaxf(largest, fabsf(values[i]));
    largest = reduce_lanes<Max>(largest, Format::SIZE / EIGHT);
    if (at >= count) return;
    const int scale_code = Format::scale_code(largest, shared);
    const float scale = Format::scale(scale_code, shared);
    if (at % Format::SIZE == 0) scales[at / Format::SIZE] = uint8_t(scale_code);
    uint32_t word = 0;
#pragma unroll
    for (int i = 0; i < EIGHT; ++i) word |= (scale > 0.f ? e2m1_code(values[i] / scale) : 0u) << (4 * i);
    *reinterpret_cast<uint32_t*>(codes + at / 2) = word;
}

template <class Format, class T>
QW_INLINE void dequantize_fp4(const uint8_t* codes, const uint8_t* scales, const float* tensor, T* out, long long count) {
    const long long at = ((long long)blockIdx.x * blockDim.x + threadIdx.x) * EIGHT;
    if (at >= count) return;
    const float scale = Format::scale(scales[at / Format::SIZE], tensor ? tensor[0] : 1.f);
    const uint32_t word = *reinterpret_cast<const uint32_t*>(codes + at / 2);
    float values[EIGHT];
#pragma unroll
    for (int i = 0; i < EIGHT; ++i) values[i] = scale * e2m1_value(word >> (4 * i) & 15);
    store_eight(out + at, values);
}

}  // namespace qw

#define QW_FP4(FORMAT, NAME, T)                                                                                       \
    QW_KERNEL(256) quantize_##NAME(const T* x, uint8_t* codes, uint8_t* scales, const float* tensor,                  \
                                   long long count) {                                                                 \
        qw::quantize_fp4<FORMAT>(x, codes, scales, tensor, count);                                                    \
    }                                                                                                                 \
    QW_KERNEL(256) dequantize_##NAME(const uint8_t* codes, const uint8_t* scales, const float* tensor, T* out,        \
                                     long long count) {                                                               \
        qw::dequantize_fp4<FORMAT>(codes, scales, tensor, out, count);                                                \
    }
QW_FLOATS(QW_FP4, qw::MxFp4, mxfp4)
QW_FLOATS(QW_FP4, qw::NvFp4, nvfp4)
