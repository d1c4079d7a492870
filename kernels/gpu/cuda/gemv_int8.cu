// INT8 activations times INT8 weights for few rows, four products an instruction: see gemv8.cuh.
#include "gemv8.cuh"

namespace qw {

struct DotInt8 {
    typedef int Sum;
    typedef uint32_t Part;
    static QW_INLINE Part part(uint32_t codes) { return codes; }
    static QW_INLINE void add(int& sum, Part a, Part b) { sum = __dp4a(int(a), int(b), sum); }
};

}  // namespace qw

GEMV8_ALL(int8, DotInt8)
