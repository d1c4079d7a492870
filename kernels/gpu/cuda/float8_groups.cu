// FP8 (E4M3 without infinities, and E5M2) in groups: value = scale * code.  Too large a value becomes the largest.
#include "group_quantize.cuh"

namespace qw {

template <__nv_fp8_interpretation_t KIND> struct Float8 {
    static constexpr int ZERO = 0;
    static constexpr float LARGEST = KIND == __NV_E4M3 ? 448.f : 57344.f;
    static QW_INLINE Fit fit(float low, float high) { return fit_of(fmaxf(-low, high) / LARGEST, ZERO); }
    static QW_INLINE __nv_fp8x2_storage_t pair(float a, float b, const Fit& f) {
        return __nv_cvt_float2_to_fp8x2(make_float2(a * f.inverse, b * f.inverse), __NV_SATFINITE, KIND);
    }
    static QW_INLINE int code(float x, const Fit& f) { return pair(x, 0.f, f) & 255; }
    static QW_INLINE float value(int code, const Fit& f) {
        return f.scale * __half2float(__half(__nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t(code), KIND)));
    }
    static QW_INLINE void store(uint8_t* codes, long long at, const float (&x)[EIGHT], const Fit& f) {
        Pack<uint16_t, EIGHT / 2> pack;
#pragma unroll
        for (int i = 0; i < EIGHT; i += 2) pack.at[i / 2] = pair(x[i], x[i + 1], f);
        qw::store(reinterpret_cast<uint16_t*>(codes + at), pack);
    }
    static QW_INLINE void load(const uint8_t* codes, long long at, float (&x)[EIGHT], const Fit& f) {
        const auto pack = qw::load<uint8_t, EIGHT>(codes + at);
#pragma unroll
        for (int i = 0; i < EIGHT; ++i) x[i] = value(pack.at[i], f);
    }
};

}  // namespace qw

QW_FLOATS(QW_GROUPS, qw::Float8<__NV_E4M3>, e4m3)
QW_FLOATS(QW_GROUPS, qw::Float8<__NV_E5M2>, e5m2)
QW_FLOATS(QW_STATIC, qw::Float8<__NV_E4M3>, e4m3)
QW_FLOATS(QW_STATIC, qw::Float8<__NV_E5M2>, e5m2)
