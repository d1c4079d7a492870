// INT8 and INT4, symmetric (a scale) and asymmetric (a scale and a zero point), in groups.
// value = scale * (code - zero).  INT4: two codes in a byte, the first in the low bits; symmetric codes are stored plus 8.
#include "group_quantize.cuh"

namespace qw {

template <int LOW, int HIGH, int OFFSET> struct Symmetric {
    static constexpr int ZERO = OFFSET;
    static QW_INLINE Fit fit(float low, float high) { return fit_of(fmaxf(-low, high) / HIGH, ZERO); }
    static QW_INLINE int code(float x, const Fit& f) { return clamp(__float2int_rn(x * f.inverse), LOW, HIGH) + OFFSET; }
};

template <int HIGH> struct Asymmetric {
    static constexpr int ZERO = 0;
    static QW_INLINE Fit fit(float low, float high) {
        const Fit f = fit_of((high - low) / HIGH, 0);
        return {f.scale, f.inverse, clamp(__float2int_rn(-low * f.inverse), 0, HIGH)};
    }
    static QW_INLINE int code(float x, const Fit& f) { return clamp(__float2int_rn(x * f.inverse) + f.zero, 0, HIGH); }
};

template <class Levels, class Stored> struct Bytes : Levels {
    static QW_INLINE float value(int code, const Fit& f) { return f.scale * (code - f.zero); }
    static QW_INLINE void store(uint8_t* codes, long long at, const float (&x)[EIGHT], const Fit& f) {
        Pack<Stored, EIGHT> pack;
#pragma unroll
        for (int i = 0; i < EIGHT; ++i) pack.at[i] = Stored(Levels::code(x[i], f));
        qw::store(reinterpret_cast<Stored*>(codes) + at, pack);
    }
    static QW_INLINE void load(const uint8_t* codes, long long at, float (&x)[EIGHT], const Fit& f) {
        const auto pack = qw::load<Stored, EIGHT>(reinterpret_cast<const Stored*>(codes) + at);
#pragma unroll
        for (int i = 0; i < EIGHT; ++i) x[i] = value(pack.at[i], f);
    }
};

template <class Levels> struct Nibbles : Levels {
    static QW_INLINE float value(int code, const Fit& f) { return f.scale * (code - f.zero); }
    static QW_INLINE void store(uint8_t* codes, long long at, const float (&x)[EIGHT], const Fit& f) {
        uint32_t word = 0;
#pragma unroll
        for (int i = 0; i < EIGHT; ++i) word |= uint32_t(Levels::code(x[i], f)) << (4 * i);
        *reinterpret_cast<uint32_t*>(codes + at / 2) = word;
    }
    static QW_INLINE void load(const uint8_t* codes, long long at, float (&x)[EIGHT], const Fit& f) {
        const uint32_t word = *reinterpret_cast<const uint32_t*>(codes + at / 2);
#pragma unroll
        for (int i = 0; i < EIGHT; ++i) x[i] = value(word >> (4 * i) & 15, f);
    }
};

typedef Bytes<Symmetric<-127, 127, 0>, int8_t> Int8;
typedef Bytes<Asymmetric<255>, uint8_t> Int8Asymmetric;
typedef Nibbles<Symmetric<-7, 7, 8>> Int4;
typedef Nibbles<Asymmetric<15>> Int4Asymmetric;

}  // namespace qw

QW_FLOATS(QW_GROUPS, qw::Int8, int8)
QW_FLOATS(QW_GROUPS, qw::Int8Asymmetric, int8_asym)
QW_FLOATS(QW_GROUPS, qw::Int4, int4)
QW_FLOATS(QW_GROUPS, qw::Int4Asymmetric, int4_asym)
QW_FLOATS(QW_STATIC, qw::Int8, int8)
