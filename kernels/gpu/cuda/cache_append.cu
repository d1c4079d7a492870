// One new token into a quantized cache: rotary position for the query and the key, codes with a scale for each head.
//
// A warp takes a head: lane i holds elements i, i + 32, ...; element e turns with e + D / 2 (Llama's order).  The token's place
// is length - 1, read from the device, so that a recorded launch serves a growing cache.
#include "row_codes.cuh"

namespace qw {

struct Token {
    const __half *query, *key, *value;     // [H, D], [G, D], [G, D]
    const float *cosine, *sine;            // [tokens, D / 2]
    const int* length;
    int heads, groups, tokens;
};

template <class Code, int EACH>
QW_INLINE void store_head(const float (&v)[EACH], uint8_t* codes, float* scale) {
    float largest = 0.f;
#pragma unroll
    for (int i = 0; i < EACH; ++i) largest = fmaxf(largest, fabsf(v[i]));
    const Fit fit = fit_of(reduce_lanes<Max>(largest) / Code::LARGEST, 0);
    if (threadIdx.x % 32 == 0) *scale = fit.scale;
#pragma unroll
    for (int i = 0; i < EACH; ++i) codes[32 * i + threadIdx.x % 32] = Code::code(v[i] * fit.inverse);
}

// Block: a head; first the query's heads, then those of the key and of the value.
template <class Code, int EACH>
QW_INLINE void append(const Token& t, __half* turned, uint8_t* keys, uint8_t* values, float* key_scales, float* value_scales) {
    constexpr int D = 32 * EACH, HALF = EACH / 2;
    const int lane = threadIdx.x, place = min(max(*t.length, 1), t.tokens) - 1;
    const int head = int(blockIdx.x) - t.heads, group = head < t.groups ? head : head - t.groups;
    const __half* from = head < 0 ? t.query + (long long)blockIdx.x * D : (head < t.groups ? t.key : t.value) + (long long)group * D;
    float v[EACH];
#pragma unroll
    for (int i = 0; i < EACH; ++i) v[i] = __half2float(from[32 * i + lane]);
    if (head < t.groups) {
#pragma unroll
        for (int i = 0; i < HALF; ++i) {
            const float c = t.cosine[place * (D / 2) + 32 * i + lane], s = t.sine[place * (D / 2) + 32 * i + lane];
            const float a = v[i], b = v[i + HALF];
            v[i] = __fsub_rn(__fmul_rn(a, c), __fmul_rn(b, s));
            v[i + HALF] = __fadd_rn(__fmul_rn(b, c), __fmul_rn(a, s));
        }
    }
    if (head < 0) {
#pragma unroll
        for (int i = 0; i < EACH; ++i) turned[blockIdx.x * D + 32 * i + lane] = __float2half_rn(v[i]);
        return;
    }
    const long long at = (long long)place * t.groups + group;
    const bool key = head < t.groups;
    store_head<Code>(v, (key ? keys : values) + at * D, (key ? key_scales : value_scales) + at);
}

}  // namespace qw

#define APPEND(NAME, CODE, EACH)                                                                                       \
    QW_KERNEL(32) append_##NAME(const __half* query, const __half* key, const __half* value, const float* cosine,      \
                                const float* sine, const int* length, __half* turned, uint8_t* keys, uint8_t* values,  \
                                float* key_scales, float* value_scales, int heads, int groups, int tokens) {           \
        qw::append<qw::CODE, EACH>({query, key, value, cosine, sine, length, heads, groups, tokens}, turned, keys,     \
                                   values, key_scales, value_scales);                                                  \
    }
APPEND(int8_64, CodeInt8, 2)
APPEND(int8_128, CodeInt8, 4)
APPEND(e4m3_64, CodeE4M3, 2)
APPEND(e4m3_128, CodeE4M3, 4)
