// FP8 (E4M3) activations times FP8 weights for few rows, summed in float: see gemv8.cuh.  Older devices have no conversion.
#include "gemv8.cuh"

namespace qw {

struct DotE4M3 {
    typedef float Sum;
    struct Part { float2 low, high; };
    static QW_INLINE float2 pair(uint32_t codes) {
        return __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t(codes & 0xffff), __NV_E4M3)));
    }
    static QW_INLINE Part part(uint32_t codes) { return {pair(codes), pair(codes >> 16)}; }
    static QW_INLINE void add(float& sum, const Part& a, const Part& b) {
        sum += a.low.x * b.low.x + a.low.y * b.low.y + a.high.x * b.high.x + a.high.y * b.high.y;
    }
};

}  // namespace qw

GEMV8_ALL(e4m3, DotE4M3)
