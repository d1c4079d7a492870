// One pass over every row of a matrix: least, largest, sum, sum of squares, count of values that are not finite, and
// a histogram of |x| that needs no range: the bin is the exponent and three bits of the mantissa (2048 bins).
#include "portable.cuh"

namespace qw {

constexpr int BINS = 2048;
constexpr int COPIES = 4;  // of the histogram in shared memory, so that neighbouring lanes meet less often
constexpr int RESULTS = 5;
constexpr int WARPS = 8;

struct Moments {
    float low = INFINITY, high = -INFINITY;
    double sum = 0, squares = 0;
    unsigned skipped = 0;
};

QW_INLINE int bin_of(float x) { return int((__float_as_uint(x) & 0x7fffffffu) >> 20); }

// Adds COUNT values: float within, double across, so that long rows keep their digits.
template <int COUNT, bool HISTOGRAM, class T>
QW_INLINE void add(Moments& m, const Pack<T, COUNT>& values, unsigned* counts) {
    float sum = 0, squares = 0;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
        const float x = to_float(values.at[i]);
        if (HISTOGRAM) atomicAdd(&counts[bin_of(x)], 1u);
        if (is_finite(x)) {
            m.low = fminf(m.low, x);
            m.high = fmaxf(m.high, x);
            sum += x;
            squares += x * x;
        } else {
            ++m.skipped;
        }
    }
    m.sum += sum;
    m.squares += squares;
}

// The moments of all threads of the block; thread 0 writes them.
QW_INLINE void write_block(const Moments& m, double* out) {
    __shared__ double parts[RESULTS][WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const double own[RESULTS] = {reduce_lanes<Min>(m.low), reduce_lanes<Max>(m.high), reduce_lanes<Sum>(m.sum),
                                 reduce_lanes<Sum>(m.squares), (double)reduce_lanes<Sum>(m.skipped)};
    if (lane == 0)
        for (int i = 0; i < RESULTS; ++i) parts[i][warp] = own[i];
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int i = 0; i < RESULTS; ++i) {
        double all = parts[i][0];
        for (int w = 1; w < WARPS; ++w)
            all = i == 0 ? Min::of(all, parts[i][w]) : i == 1 ? Max::of(all, parts[i][w]) : all + parts[i][w];
        out[i] = all;
    }
}

// Block (split, row) takes every gridDim.x-th part of its row.  Rows start at multiples of 16 bytes, or `packed` is 0.
template <class T, bool HISTOGRAM>
QW_INLINE void summarize(const T* x, long long columns, int packed, double* out, unsigned* histogram) {
    constexpr int COUNT = 16 / sizeof(T);
    __shared__ unsigned counts[HISTOGRAM ? COPIES * BINS : 1];
    if (HISTOGRAM) {
        for (int i = threadIdx.x; i < COPIES * BINS; i += blockDim.x) counts[i] = 0;
        __syncthreads();
    }
    unsigned* own = HISTOGRAM ? counts + threadIdx.x % COPIES * BINS : counts;
    const T* row = x + blockIdx.y * columns;
    const long long step = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long packs = packed ? columns / COUNT : 0;
    Moments moments;
    for (long long i = first; i < packs; i += step) add<COUNT, HISTOGRAM>(moments, load<T, COUNT>(row + i * COUNT), own);
    for (long long i = packs * COUNT + first; i < columns; i += step)
        add<1, HISTOGRAM>(moments, Pack<T, 1>{{row[i]}}, own);
    write_block(moments, out + ((long long)blockIdx.y * gridDim.x + blockIdx.x) * RESULTS);
    if (!HISTOGRAM) return;  // write_block has waited for all threads' counts
    for (int i = threadIdx.x; i < BINS; i += blockDim.x) {
        unsigned all = 0;
        for (int copy = 0; copy < COPIES; ++copy) all += counts[copy * BINS + i];
        if (all) atomicAdd(&histogram[i], all);
    }
}

}  // namespace qw

#define STATISTICS(NAME, T)                                                                                           \
    QW_KERNEL(256) statistics_##NAME(const T* x, long long columns, int packed, double* out, unsigned* histogram) {   \
        qw::summarize<T, false>(x, columns, packed, out, histogram);                                                  \
    }                                                                                                                 \
    QW_KERNEL(256) histogram_##NAME(const T* x, long long columns, int packed, double* out, unsigned* histogram) {    \
        qw::summarize<T, true>(x, columns, packed, out, histogram);                                                   \
    }
STATISTICS(f32, float)
STATISTICS(f16, __half)
STATISTICS(bf16, __nv_bfloat16)
