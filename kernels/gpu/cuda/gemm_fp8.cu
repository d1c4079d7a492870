// FP8 (E4M3) activations times FP8 weights, summed in float, scaled per token and per channel: see gemm8.cuh.
// Native on sm_89 and sm_120; sm_90 and sm_100 compute it through FP16 at half the rate: gemm_fp8_wgmma.cu is for sm_90a.
#include "gemm8.cuh"

namespace qw {

struct MultiplyE4M3 {
    typedef float Sum;
    static QW_INLINE void run(float (&c)[4], const Registers4& a, const Registers2& b) { multiply_e4m3(c, a, b); }
};

}  // namespace qw

QW_GEMM8_ALL(gemm_fp8, qw::MultiplyE4M3)
