// INT8 activations times INT8 weights, summed in 32-bit integers, scaled per token and per channel: see gemm8.cuh.
#include "gemm8.cuh"

namespace qw {

struct MultiplyInt8 {
    typedef int Sum;
    static QW_INLINE void run(int (&c)[4], const Registers4& a, const Registers2& b) { multiply_s8(c, a, b); }
};

}  // namespace qw

QW_GEMM8_ALL(gemm_int8, qw::MultiplyInt8)
