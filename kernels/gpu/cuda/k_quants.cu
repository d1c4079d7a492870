// GGUF's K-quants from float: Q4_K, Q3_K, Q6_K, byte for byte what llama.cpp writes without an importance matrix.
//
// One thread searches one sub-block (32 or 16 values, all in registers) in the order of the scalar algorithm, whose sums
// depend on that order; the 8 or 16 threads of a block then agree on its units and interleave their codes by shuffles.
// About 500 operations a value: bound by arithmetic, not by memory.
#include "portable.cuh"

namespace qw {

// A float whose operations round one by one: a fused multiply-add would change a byte in a thousand.
struct Single {
    float value;
    QW_INLINE Single(float x = 0.f) : value(x) {}
};
QW_INLINE Single operator+(Single a, Single b) { return __fadd_rn(a.value, b.value); }
QW_INLINE Single operator-(Single a, Single b) { return __fsub_rn(a.value, b.value); }
QW_INLINE Single operator*(Single a, Single b) { return __fmul_rn(a.value, b.value); }
QW_INLINE Single operator/(Single a, Single b) { return a.value / b.value; }
QW_INLINE bool operator<(Single a, Single b) { return a.value < b.value; }
QW_INLINE bool operator>(Single a, Single b) { return a.value > b.value; }
QW_INLINE Single magnitude(Single a) { return fabsf(a.value); }
QW_INLINE Single limited(Single a, float low, float high) { return fminf(fmaxf(a.value, low), high); }

// The nearest integer, halves to even, within bounds; exact below 2^22, and beyond that the bounds decide.
QW_INLINE Single rounded(Single a, float low, float high) { return limited(a + 12582912.f - 12582912.f, low, high); }

constexpr float TINY = 1e-15f;  // a group below this counts as zero: its float16 scale would vanish

struct Range { Single scale, low; };

// x ~ scale * code + low, codes 0 to `top`, low <= 0, errors weighted by |x| plus the root of the mean square.
template <int SIZE> struct AffineSearch {
    const Single (&x)[SIZE];
    Single spread, low, high, total, moment, codes[SIZE];

    QW_INLINE explicit AffineSearch(const Single (&values)[SIZE]) : x(values) {
        Single squares = 0.f;
#pragma unroll
        for (int i = 0; i < SIZE; ++i) squares = squares + x[i] * x[i];
        spread = sqrtf((squares / float(SIZE)).value);
        low = x[0], high = x[0], total = weight(0), moment = weight(0) * x[0];
#pragma unroll
        for (int i = 1; i < SIZE; ++i) {
            low = fminf(low.value, x[i].value), high = fmaxf(high.value, x[i].value);
            total = total + weight(i);
            moment = moment + weight(i) * x[i];
        }
        low = fminf(low.value, 0.f);
    }
    QW_INLINE Single weight(int i) const { return spread + magnitude(x[i]); }
    QW_INLINE void choose_codes(Single inverse, float top) {
#pragma unroll
        for (int i = 0; i < SIZE; ++i) codes[i] = rounded(inverse * (x[i] - low), 0.f, top);
    }
    QW_INLINE Single error(Range fit) const {
        Single sum = 0.f;
#pragma unroll
        for (int i = 0; i < SIZE; ++i) {
            const Single e = fit.scale * codes[i] + fit.low - x[i];
            sum = sum + weight(i) * (e * e);
        }
        return sum;
    }
    // Least squares for the codes; returns whether there is a solution.
    QW_INLINE bool solve(Range& fit) const {
        Single s1 = 0.f, s2 = 0.f, sx = 0.f;
#pragma unroll
        for (int i = 0; i < SIZE; ++i) {
            const Single weighted = weight(i) * codes[i];
            s1 = s1 + weighted;
            s2 = s2 + weighted * codes[i];
            sx = sx + weighted * x[i];
        }
        const Single determinant = total * s2 - s1 * s1, offset = (s2 * moment - s1 * sx) / determinant;
        fit.low = offset > 0.f ? Single(0.f) : offset;
        fit.scale = offset > 0.f ? sx / s2 : (total * sx - moment * s1) / determinant;
        return determinant > 0.f;
    }
    // Tries steps + 1 inverse scales.  An accepted low also changes what the following attempts try: so does the reference.
    QW_INLINE Range run(float top, float first, float step, int steps) {
        const Single start = Single(top) / (high - low);
        choose_codes(start, top);
        Range kept = {Single(1.f) / start, low};
        Single best = error(kept);
#pragma unroll 1
        for (int attempt = 0; attempt <= steps; ++attempt) {
            choose_codes((Single(first) + Single(step) * float(attempt) + top) / (high - low), top);
            Range fit;
            if (!solve(fit)) continue;
            const Single found = error(fit);
            if (found < best) best = found, kept = fit, low = fit.low;
        }
        return kept;
    }
};

template <int SIZE> QW_INLINE Single peak_of(const Single (&x)[SIZE]) {
    Single peak = 0.f;
#pragma unroll
    for (int i = 0; i < SIZE; ++i) peak = magnitude(x[i]) > magnitude(peak) ? x[i] : peak;
    return peak;
}

// The scale of x ~ scale * code, codes -top to top - 1, errors weighted by x^2: 19 inverse scales, each solved.
template <int SIZE> QW_INLINE Single search_symmetric(const Single (&x)[SIZE], float top) {
    const Single peak = peak_of(x);
    Single best = -1.f, kept = 0.f;
#pragma unroll 1
    for (int attempt = -10; attempt < 10; ++attempt) {
        if (attempt == 0) continue;
        const Single offset = Single(0.1f) * float(attempt == -10 ? 0 : attempt), wanted = Single(top) + offset;
        const Single inverse = Single(-wanted.value) / peak;
        Single sx = 0.f, s2 = 0.f;
#pragma unroll
        for (int i = 0; i < SIZE; ++i) {
            const Single code = rounded(inverse * x[i], -top, top - 1), weight = x[i] * x[i];
            sx = sx + weight * x[i] * code;
            s2 = s2 + weight * code * code;
        }
        if (s2 > 0.f && sx * sx > best * s2) kept = sx / s2, best = kept * sx;
    }
    return magnitude(peak) < TINY || best < 0.f ? Single(0.f) : kept;
}

// The same for few codes: the nearest ones, then up to five rounds that move one code after another where the fit gains.
template <int SIZE> QW_INLINE Single search_refined(const Single (&x)[SIZE], float top) {
    const Single peak = peak_of(x), inverse = Single(-top) / peak;
    Single codes[SIZE], sx = 0.f, s2 = 0.f;
#pragma unroll
    for (int i = 0; i < SIZE; ++i) {
        codes[i] = rounded(inverse * x[i], -top, top - 1);
        sx = sx + x[i] * x[i] * x[i] * codes[i];
        s2 = s2 + x[i] * x[i] * codes[i] * codes[i];
    }
    bool moved = true;
#pragma unroll 1
    for (int round = 0; round < 5 && moved; ++round) {
        moved = false;
#pragma unroll
        for (int i = 0; i < SIZE; ++i) {
            const Single weight = x[i] * x[i], rest_x = sx - weight * x[i] * codes[i], rest_2 = s2 - weight * codes[i] * codes[i];
            const Single code = rounded(x[i] * rest_2 / rest_x, -top, top - 1);
            const Single new_x = rest_x + weight * x[i] * code, new_2 = rest_2 + weight * code * code;
            const bool closer = new_x * new_x * s2 > sx * sx * new_2;
            if (!(rest_x > 0.f && new_2 > 0.f && closer && code.value != codes[i].value)) continue;
            codes[i] = code, sx = new_x, s2 = new_2, moved = true;
        }
    }
    return magnitude(peak) < TINY || !(s2 > 0.f) ? Single(0.f) : sx / s2;
}

// What the lanes of a block agree on: a unit, and each lane's value in that unit.
struct InUnits { Single unit; int code; };

// The largest value gets the code `top`; values below zero count as zero.
template <int LANES> QW_INLINE InUnits positive_units(Single value, float top) {
    const Single most = Single(fmaxf(reduce_lanes<Max>(value.value, LANES), 0.f)) + 0.f;  // not -0, whose sign would be stored
    const Single per_unit = most > TINY ? Single(top) / most : Single(0.f);
    return {most / top, int(limited(rintf((per_unit * value).value), 0.f, top).value)};
}

// The value of largest magnitude, the first of equals, gets the code -top.
template <int LANES> QW_INLINE InUnits signed_units(Single value, float top) {
    float largest = fabsf(value.value), peak = value.value;
#pragma unroll
    for (int offset = 1; offset < LANES; offset *= 2) {
        const float other = __shfl_xor_sync(ALL_LANES, largest, offset), other_peak = __shfl_xor_sync(ALL_LANES, peak, offset);
        if (other > largest || (other == largest && (threadIdx.x & offset))) largest = other, peak = other_peak;
    }
    const Single per_unit = largest >= TINY ? Single(-top) / peak : Single(0.f), unit = Single(1.f) / per_unit;
    const int code = int(limited(rintf((per_unit * value).value), -top, top - 1).value);
    return {is_finite(unit.value) ? unit : Single(0.f), code};
}

QW_INLINE __half half_of(Single unit) { return __float2half_rn(limited(unit, -65504.f, 65504.f).value); }
QW_INLINE Single stored(Single unit) { return __half2float(half_of(unit)); }

QW_INLINE void store_half(uint8_t* to, Single unit) { *reinterpret_cast<__half*>(to) = half_of(unit); }
QW_INLINE void store_pair(uint8_t* to, uint32_t value) { *reinterpret_cast<uint16_t*>(to) = uint16_t(value); }
QW_INLINE void store_four(uint8_t* to, uint32_t value) { store_pair(to, value), store_pair(to + 2, value >> 16); }

// The nearest codes of x ~ scale * (code - zero) + low, four to a word; `zero` where the scale is zero.
template <int SIZE>
QW_INLINE void encode(const Single (&x)[SIZE], Single scale, Single low, float zero, float top, uint32_t (&words)[SIZE / 4]) {
    const bool empty = scale.value == 0.f;
#pragma unroll
    for (int w = 0; w < SIZE / 4; ++w) {
        words[w] = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const Single exact = (x[4 * w + i] - low) / (empty ? Single(1.f) : scale);
            const Single code = rounded(limited(exact, -256.f, 256.f), -256.f, 256.f) + zero;
            words[w] |= uint32_t(limited(code, empty ? zero : 0.f, empty ? zero : top).value) << (8 * i);
        }
    }
}

// Each word joined over the lanes whose numbers differ in the bits of MASK only.
template <int MASK, int COUNT> QW_INLINE void join(uint32_t (&words)[COUNT]) {
#pragma unroll
    for (int offset = 1; offset < 16; offset *= 2)
        if (MASK & offset)
#pragma unroll
            for (int w = 0; w < COUNT; ++w) words[w] |= __shfl_xor_sync(ALL_LANES, words[w], offset);
}

template <int COUNT> QW_INLINE void shifted(const uint32_t (&words)[COUNT], int right, uint32_t mask, int left, uint32_t (&out)[COUNT]) {
#pragma unroll
    for (int w = 0; w < COUNT; ++w) out[w] = (words[w] >> right & mask) << left;
}

struct EncodeQ4K {
    static constexpr int SIZE = 32, LANES = 8, BYTES = 144;
    static constexpr float LIMIT = 65504.f * (63 * 15);
    static QW_INLINE void run(const Single (&x)[SIZE], uint8_t* to, int lane, bool live) {
        AffineSearch<SIZE> search(x);
        const Range found = search.run(15.f, -1.f, 0.1f, 20);
        const InUnits scale = positive_units<LANES>(found.scale, 63.f), least = positive_units<LANES>(-found.low.value, 63.f);
        uint32_t words[8], both[8];
        const Single minimum = stored(least.unit) * float(least.code);
        encode(x, stored(scale.unit) * float(scale.code), -minimum.value, 0.f, 15.f, words);
        shifted(words, 0, 0x0f0f0f0f, 4 * (lane & 1), both);
        join<1>(both);
        const int next_scale = __shfl_down_sync(ALL_LANES, scale.code, 4, LANES);
        const int next_least = __shfl_down_sync(ALL_LANES, least.code, 4, LANES);
        if (!live) return;
        uint8_t* codes = to + 16 + 32 * (lane / 2) + 16 * (lane & 1);
#pragma unroll
        for (int w = 0; w < 4; ++w) store_four(codes + 4 * w, lane & 1 ? both[4 + w] : both[w]);
        if (lane == 0) store_half(to, scale.unit), store_half(to + 2, least.unit);
        if (lane >= 4) return;
        to[4 + lane] = uint8_t(scale.code | next_scale >> 4 << 6);
        to[8 + lane] = uint8_t(least.code | next_least >> 4 << 6);
        to[12 + lane] = uint8_t((next_scale & 15) | (next_least & 15) << 4);
    }
};

// Lane 8 * half + 2 * part + upper holds values 16 * upper to 16 * upper + 15 of part `part` of a half.
struct EncodeQ3K {
    static constexpr int SIZE = 16, LANES = 16, BYTES = 110;
    static constexpr float LIMIT = 65504.f * (32 * 4);
    static QW_INLINE void run(const Single (&x)[SIZE], uint8_t* to, int lane, bool live) {
        const InUnits scale = signed_units<LANES>(search_refined(x, 4.f), 32.f);
        const int upper = lane & 1, part = lane >> 1 & 3, half = lane >> 3, code = scale.unit.value == 0.f ? 0 : scale.code + 32;
        uint32_t words[4], low[4], high[4], scales[1];
        encode(x, stored(scale.unit) * float(code - 32), 0.f, 4.f, 7.f, words);
        shifted(words, 0, 0x03030303, 2 * part, low);
        join<6>(low);
        shifted(words, 2, 0x01010101, lane >> 1, high);
        join<14>(high);
        scales[0] = uint32_t(code >> 4) << (2 * (lane / 4));
        join<12>(scales);
        const int next = __shfl_down_sync(ALL_LANES, code, 8, LANES);
        if (!live) return;
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            if (part == w) store_four(to + 32 + 32 * half + 16 * upper + 4 * w, low[w]);
            if (lane >> 2 == w) store_pair(to + 16 * upper + 2 * (lane >> 1), high[w] >> (16 * (lane >> 1 & 1)));
        }
        if (lane == 0) store_half(to + 108, scale.unit);
        if (lane < 8) to[96 + lane] = uint8_t((code & 15) | (next & 15) << 4);
        if (lane < 4) to[104 + lane] = uint8_t(scales[0]);
    }
};

// Lane 8 * half + place holds 16 values: low nibbles of places p and p + 4 share bytes, pairs of high bits of four places.
struct EncodeQ6K {
    static constexpr int SIZE = 16, LANES = 16, BYTES = 210;
    static constexpr float LIMIT = 65504.f * (128 * 32);
    static QW_INLINE void run(const Single (&x)[SIZE], uint8_t* to, int lane, bool live) {
        const InUnits scale = signed_units<LANES>(search_symmetric(x, 32.f), 128.f);
        const int half = lane >> 3, place = lane & 7;
        uint32_t words[4], low[4], high[4];
        encode(x, stored(scale.unit) * float(scale.code), 0.f, 32.f, 63.f, words);
        shifted(words, 0, 0x0f0f0f0f, place & 4, low);
        join<4>(low);
        shifted(words, 4, 0x03030303, place & 6, high);
        join<6>(high);
        if (!live) return;
#pragma unroll
        for (int w = 0; w < 4; ++w) {
            if (place >> 2 == w >> 1) store_four(to + 64 * half + 16 * (place & 3) + 4 * w, low[w]);
            if (place >> 1 == w) store_four(to + 128 + 32 * half + 16 * (place & 1) + 4 * w, high[w]);
        }
        to[192 + lane] = uint8_t(scale.code);
        if (lane == 0) store_half(to + 208, scale.unit);
    }
};

template <class Format> QW_INLINE void quantize_k(const float* x, uint8_t* out, long long count) {
    const long long thread = (long long)blockIdx.x * blockDim.x + threadIdx.x, block = thread / Format::LANES;
    const bool live = block < count;
    Single v[Format::SIZE];
#pragma unroll
    for (int i = 0; i < Format::SIZE; i += 4) {
        const Pack<float, 4> pack = live ? load<float, 4>(x + thread * Format::SIZE + i) : Pack<float, 4>{{0, 0, 0, 0}};
#pragma unroll
        for (int j = 0; j < 4; ++j) v[i + j] = limited(pack.at[j], -Format::LIMIT, Format::LIMIT);
    }
    Format::run(v, out + block * Format::BYTES, int(thread % Format::LANES), live);
}

}  // namespace qw

QW_KERNEL(128) quantize_q4_k(const float* x, uint8_t* out, long long count) { qw::quantize_k<qw::EncodeQ4K>(x, out, count); }
QW_KERNEL(128) quantize_q3_k(const float* x, uint8_t* out, long long count) { qw::quantize_k<qw::EncodeQ3K>(x, out, count); }
QW_KERNEL(128) quantize_q6_k(const float* x, uint8_t* out, long long count) { qw::quantize_k<qw::EncodeQ6K>(x, out, count); }
