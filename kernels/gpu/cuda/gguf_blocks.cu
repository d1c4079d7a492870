// GGUF's block formats: Q4_0, Q8_0, Q4_K, Q3_K, Q6_K to values, and values to Q4_0 and Q8_0, byte for byte what llama.cpp
// writes.  Blocks start at even addresses only, so everything is loaded in pairs of bytes.
#include "portable.cuh"

namespace qw {

QW_INLINE float half_at(const uint8_t* p) { return __half2float(*reinterpret_cast<const __half*>(p)); }
QW_INLINE uint32_t pair_at(const uint8_t* p) { return *reinterpret_cast<const uint16_t*>(p); }
QW_INLINE uint32_t four_at(const uint8_t* p) { return pair_at(p) | pair_at(p + 2) << 16; }
QW_INLINE int byte_of(uint32_t word, int i) { return int(word >> (8 * i) & 255); }

// 18 bytes for 32 values: half scale, 16 bytes; low bits are values 0 to 15.  Four lanes a block.
struct Q4_0 {
    static constexpr int VALUES = 32, BYTES = 18, LANES = 4;
    template <class T> static QW_INLINE void decode(const uint8_t* block, T* out, int lane) {
        const float scale = half_at(block);
        const uint32_t word = four_at(block + 2 + 4 * lane);
        Pack<T, 4> low, high;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            low.at[i] = from_float<T>(scale * ((byte_of(word, i) & 15) - 8));
            high.at[i] = from_float<T>(scale * ((byte_of(word, i) >> 4) - 8));
        }
        store(out + 4 * lane, low);
        store(out + 16 + 4 * lane, high);
    }
};

// 34 bytes for 32 values: half scale, 32 signed bytes.  Eight lanes a block.
struct Q8_0 {
    static constexpr int VALUES = 32, BYTES = 34, LANES = 8;
    template <class T> static QW_INLINE void decode(const uint8_t* block, T* out, int lane) {
        const float scale = half_at(block);
        const uint32_t word = four_at(block + 2 + 4 * lane);
        Pack<T, 4> pack;
#pragma unroll
        for (int i = 0; i < 4; ++i) pack.at[i] = from_float<T>(scale * int8_t(byte_of(word, i)));
        store(out + 4 * lane, pack);
    }
};

// 144 bytes for 256 values: half scale, half minimum, 12 bytes with 8 scales and 8 minima of 6 bits, 128 bytes.
struct Q4_K {
    static constexpr int VALUES = 256, BYTES = 144, LANES = 32;
    static QW_INLINE void scale_and_minimum(const uint8_t* packed, int i, int& scale, int& minimum) {
        if (i < 4) {
            scale = packed[i] & 63;
            minimum = packed[i + 4] & 63;
        } else {
            scale = (packed[i + 4] & 15) | (packed[i - 4] >> 6) << 4;
            minimum = (packed[i + 4] >> 4) | (packed[i] >> 6) << 4;
        }
    }
    template <class T> static QW_INLINE void decode(const uint8_t* block, T* out, int lane) {
        const float scale = half_at(block), minimum = half_at(block + 2);
        const int part = lane / 8, place = lane % 8 * 4;
        const uint32_t word = four_at(block + 16 + 32 * part + place);
#pragma unroll
        for (int upper = 0; upper < 2; ++upper) {
            int s, m;
            scale_and_minimum(block + 4, 2 * part + upper, s, m);
            const float step = scale * s, shift = minimum * m;
            Pack<T, 4> pack;
#pragma unroll
            for (int i = 0; i < 4; ++i)
                pack.at[i] = from_float<T>(__fsub_rn(__fmul_rn(step, byte_of(word, i) >> (4 * upper) & 15), shift));
            store(out + 64 * part + 32 * upper + place, pack);
        }
    }
};

// 110 bytes for 256 values: 32 bytes of high bits, 64 of low pairs, 12 with 16 scales of 6 bits, half scale.
struct Q3_K {
    static constexpr int VALUES = 256, BYTES = 110, LANES = 32;
    static QW_INLINE int scale_of(const uint8_t* packed, int i) {
        const int low = i < 8 ? packed[i] & 15 : packed[i - 8] >> 4;
        return (low | (packed[8 + i % 4] >> (2 * (i / 4)) & 3) << 4) - 32;
    }
    template <class T> static QW_INLINE void decode(const uint8_t* block, T* out, int lane) {
        const int half = lane / 16, place = lane % 16 * 2;
        const uint32_t high = pair_at(block + place), low = pair_at(block + 32 + 32 * half + place);
        const float scale = half_at(block + 108);
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            const float step = scale * scale_of(block + 96, 8 * half + 2 * part + place / 16);
            Pack<T, 2> pack;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int code = (byte_of(low, i) >> (2 * part) & 3) - (byte_of(high, i) >> (4 * half + part) & 1 ? 0 : 4);
                pack.at[i] = from_float<T>(step * code);
            }
            store(out + 128 * half + 32 * part + place, pack);
        }
    }
};

// 210 bytes for 256 values: 128 bytes of low nibbles, 64 of high pairs, 16 signed scales, half scale.
struct Q6_K {
    static constexpr int VALUES = 256, BYTES = 210, LANES = 32;
    template <class T> static QW_INLINE void decode(const uint8_t* block, T* out, int lane) {
        const int half = lane / 16, place = lane % 16 * 2;
        const uint32_t high = pair_at(block + 128 + 32 * half + place);
        const float scale = half_at(block + 208);
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            const uint32_t low = pair_at(block + 64 * half + 32 * (part % 2) + place);
            const float step = scale * int8_t(block[192 + 8 * half + 2 * part + place / 16]);
            Pack<T, 2> pack;
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int nibble = byte_of(low, i) >> (part / 2 * 4) & 15;
                pack.at[i] = from_float<T>(step * ((nibble | (byte_of(high, i) >> (2 * part) & 3) << 4) - 32));
            }
            store(out + 128 * half + 32 * part + place, pack);
        }
    }
};

template <class Format, class T> QW_INLINE void dequantize_blocks(const uint8_t* blocks, T* out, long long count) {
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x, block = thread / Format::LANES;
    if (block >= count) return;
    Format::decode(blocks + block * Format::BYTES, out + block * Format::VALUES, int(thread % Format::LANES));
}

QW_INLINE Pack<float, 4> four_values(const float* x, long long thread, bool live) {
    return live ? load<float, 4>(x + 4 * thread) : Pack<float, 4>{{0, 0, 0, 0}};
}

// Below 2^-128 there is no inverse; such a scale is zero as a half anyway.
QW_INLINE float inverse_of(float scale) {
    const float inverse = 1.f / scale;
    return is_finite(inverse) ? inverse : 0.f;
}

// Eight lanes a block, four values each.  The scale is the value of largest magnitude, the first of equals, over -8.
QW_INLINE void quantize_q4_0_block(const float* x, uint8_t* out, long long count) {
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x, block = thread / 8;
    const int lane = int(thread % 8);
    const Pack<float, 4> v = four_values(x, thread, block < count);
    float largest = 0.f, peak = 0.f;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        if (fabsf(v.at[i]) > largest) largest = fabsf(v.at[i]), peak = v.at[i];
#pragma unroll
    for (int offset = 1; offset < 8; offset *= 2) {
        const float other = __shfl_xor_sync(ALL_LANES, largest, offset), signed_other = __shfl_xor_sync(ALL_LANES, peak, offset);
        if (other > largest || (other == largest && (lane & offset))) largest = other, peak = signed_other;
    }
    const float scale = peak / -8.f, inverse = inverse_of(scale);
    uint32_t codes = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        codes |= uint32_t(min(15, int(int8_t(__fadd_rn(__fmul_rn(v.at[i], inverse), 8.5f)))) & 15) << (8 * i);
    const uint32_t upper = __shfl_down_sync(ALL_LANES, codes, 4, 8);
    if (block >= count) return;
    uint8_t* to = out + block * Q4_0::BYTES;
    if (lane == 0) *reinterpret_cast<__half*>(to) = __float2half_rn(scale);
    if (lane >= 4) return;
    const uint32_t word = codes | upper << 4;
    *reinterpret_cast<uint16_t*>(to + 2 + 4 * lane) = uint16_t(word);
    *reinterpret_cast<uint16_t*>(to + 4 + 4 * lane) = uint16_t(word >> 16);
}

// The nearest integer, halves away from zero.
QW_INLINE int round_away(float x) { return int(x < 0.f ? -floorf(0.5f - x) : floorf(0.5f + x)); }

// Eight lanes a block, four values each.
QW_INLINE void quantize_q8_0_block(const float* x, uint8_t* out, long long count) {
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x, block = thread / 8;
    const int lane = int(thread % 8);
    const Pack<float, 4> v = four_values(x, thread, block < count);
    float largest = 0.f;
#pragma unroll
    for (int i = 0; i < 4; ++i) largest = fmaxf(largest, fabsf(v.at[i]));
    largest = reduce_lanes<Max>(largest, 8);
    if (block >= count) return;
    const float scale = largest / 127.f, inverse = inverse_of(scale);
    uint8_t* to = out + block * Q8_0::BYTES;
    if (lane == 0) *reinterpret_cast<__half*>(to) = __float2half_rn(scale);
    uint32_t word = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) word |= uint32_t(round_away(v.at[i] * inverse) & 255) << (8 * i);
    *reinterpret_cast<uint16_t*>(to + 2 + 4 * lane) = uint16_t(word);
    *reinterpret_cast<uint16_t*>(to + 4 + 4 * lane) = uint16_t(word >> 16);
}

}  // namespace qw

#define DEQUANTIZE(FORMAT, NAME, T)                                                              \
    QW_KERNEL(256) dequantize_##NAME(const uint8_t* blocks, T* out, long long count) {           \
        qw::dequantize_blocks<qw::FORMAT>(blocks, out, count);                                   \
    }
#define DEQUANTIZE_ALL(FORMAT, NAME)          \
    DEQUANTIZE(FORMAT, NAME##_f32, float)     \
    DEQUANTIZE(FORMAT, NAME##_f16, __half)    \
    DEQUANTIZE(FORMAT, NAME##_bf16, __nv_bfloat16)
DEQUANTIZE_ALL(Q4_0, q4_0)
DEQUANTIZE_ALL(Q8_0, q8_0)
DEQUANTIZE_ALL(Q4_K, q4_k)
DEQUANTIZE_ALL(Q3_K, q3_k)
DEQUANTIZE_ALL(Q6_K, q6_k)
QW_KERNEL(256) quantize_q4_0(const float* x, uint8_t* out, long long count) { qw::quantize_q4_0_block(x, out, count); }
QW_KERNEL(256) quantize_q8_0(const float* x, uint8_t* out, long long count) { qw::quantize_q8_0_block(x, out, count); }
