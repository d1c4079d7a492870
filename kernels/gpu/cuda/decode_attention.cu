// Attention of one query against a quantized cache: out[h] = softmax(scale * q[h] K[:, g]^T) V[:, g] with g = h / (H / G).
//
// K and V are codes [tokens, G, D], INT8 or E4M3, with a float scale for each token and head [tokens, G].  Block (head,
// split): four warps share the tokens of the split; a lane holds D / 32 neighbouring elements.  Each split leaves its
// largest score, its sum of exponentials and its weighted values; a second kernel joins the splits.  The number of tokens
// can lie on the device, so that a recorded launch serves a growing cache; splits beyond it are empty.
#include "portable.cuh"

namespace qw {

constexpr int WARPS = 4, AT_ONCE = 4;

struct FromInt8 {
    static QW_INLINE float value(uint32_t word, int i) { return float(int8_t(word >> (8 * i) & 255)); }
};
struct FromE4M3 {
    static QW_INLINE float value(uint32_t word, int i) {
        return __half2float(__half(__nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t(word >> (8 * i) & 255), __NV_E4M3)));
    }
};

struct Cache {
    const uint8_t *keys, *values;
    const float *key_scales, *value_scales;
    int tokens, groups;
    const int* length;  // how many tokens are in use, on the device; null if all are
    QW_INLINE int used() const { return length ? min(*length, tokens) : tokens; }
};

// A softmax under way: largest score, sum of exponentials, sum of weighted values.
template <int EACH> struct Running {
    float largest = -INFINITY, sum = 0, values[EACH] = {};
    QW_INLINE void join(float other_largest, float other_sum, const float (&other)[EACH]) {
        const float top = fmaxf(largest, other_largest);
        if (top == -INFINITY) return;
        const float mine = __expf(largest - top), theirs = __expf(other_largest - top);
        sum = sum * mine + other_sum * theirs;
#pragma unroll
        for (int i = 0; i < EACH; ++i) values[i] = values[i] * mine + other[i] * theirs;
        largest = top;
    }
};

template <int EACH> QW_INLINE uint32_t codes_at(const uint8_t* from) {
    if (EACH == 2) return *reinterpret_cast<const uint16_t*>(from);
    return *reinterpret_cast<const uint32_t*>(from);
}

// AT_ONCE tokens from `token`: loads first, so that they are under way together.
template <class Code, int EACH>
QW_INLINE void attend(Running<EACH>& state, const float (&q)[EACH], const Cache& c, int group, int token, int last) {
    const int lane = threadIdx.x % 32;
    uint32_t keys[AT_ONCE], values[AT_ONCE];
#pragma unroll
    for (int t = 0; t < AT_ONCE; ++t) {
        const long long at = ((long long)min(token + t, last - 1) * c.groups + group) * (32 * EACH) + lane * EACH;
        keys[t] = codes_at<EACH>(c.keys + at);
        values[t] = codes_at<EACH>(c.values + at);
    }
#pragma unroll
    for (int t = 0; t < AT_ONCE; ++t) {
        float score = 0, v[EACH];
#pragma unroll
        for (int i = 0; i < EACH; ++i) score += q[i] * Code::value(keys[t], i);
        score = reduce_lanes<Sum>(score);
        if (token + t >= last) continue;
        const long long at = (long long)(token + t) * c.groups + group;
#pragma unroll
        for (int i = 0; i < EACH; ++i) v[i] = Code::value(values[t], i) * c.value_scales[at];
        state.join(score * c.key_scales[at], 1.f, v);
    }
}

template <int EACH> QW_INLINE void write_split(const Running<EACH>& mine, float* part) {
    constexpr int D = 32 * EACH;
    __shared__ float largest[WARPS], sum[WARPS], values[WARPS][D];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane == 0) largest[warp] = mine.largest, sum[warp] = mine.sum;
    for (int i = 0; i < EACH; ++i) values[warp][lane * EACH + i] = mine.values[i];
    __syncthreads();
    if (warp != 0) return;
    Running<EACH> all;
    for (int w = 0; w < WARPS; ++w) {
        float v[EACH];
        for (int i = 0; i < EACH; ++i) v[i] = values[w][lane * EACH + i];
        all.join(largest[w], sum[w], v);
    }
    float* to = part + ((long long)blockIdx.x * gridDim.y + blockIdx.y) * (D + 2);
    if (lane == 0) to[0] = all.largest, to[1] = all.sum;
    for (int i = 0; i < EACH; ++i) to[2 + lane * EACH + i] = all.values[i];
}

template <class Code, int EACH>
QW_INLINE void attend_split(const __half* query, const Cache& c, float* part, float scale, int per_split) {
    const int head = blockIdx.x, group = head / (gridDim.x / c.groups), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float q[EACH];
    for (int i = 0; i < EACH; ++i) q[i] = __half2float(query[head * 32 * EACH + lane * EACH + i]) * scale;
    const int last = min(c.used(), int(blockIdx.y + 1) * per_split);
    Running<EACH> state;
    for (int t = blockIdx.y * per_split + warp * AT_ONCE; t < last; t += WARPS * AT_ONCE)
        attend<Code>(state, q, c, group, t, last);
    write_split(state, part);
}

template <int EACH> QW_INLINE void join_splits(const float* part, __half* out, int splits) {
    constexpr int D = 32 * EACH;
    const int lane = threadIdx.x;
    Running<EACH> all;
    for (int s = 0; s < splits; ++s) {
        const float* from = part + ((long long)blockIdx.x * splits + s) * (D + 2);
        float v[EACH];
        for (int i = 0; i < EACH; ++i) v[i] = from[2 + lane * EACH + i];
        all.join(from[0], from[1], v);
    }
    for (int i = 0; i < EACH; ++i) out[blockIdx.x * D + lane * EACH + i] = __float2half_rn(all.values[i] / all.sum);
}

}  // namespace qw

#define ATTEND(NAME, CODE, EACH)                                                                                     \
    QW_KERNEL(128) attend_##NAME(const __half* q, const uint8_t* k, const uint8_t* v, const float* ks,               \
                                 const float* vs, const int* length, float* part, float scale, int tokens,           \
                                 int groups, int per_split) {                                                        \
        qw::attend_split<qw::CODE, EACH>(q, {k, v, ks, vs, tokens, groups, length}, part, scale, per_split);         \
    }
#define JOIN(D, EACH)                                                                  \
    QW_KERNEL(32) join_##D(const float* part, __half* out, int splits) {               \
        qw::join_splits<EACH>(part, out, splits);                                      \
    }
ATTEND(int8_64, FromInt8, 2)
ATTEND(int8_128, FromInt8, 4)
ATTEND(e4m3_64, FromE4M3, 2)
ATTEND(e4m3_128, FromE4M3, 4)
JOIN(64, 2)
JOIN(128, 4)
