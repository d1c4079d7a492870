// out[m, n] = left_scale[m] * right_scale[n] * sum_k A[m, k] B[n, k] + bias[n] for operands of one byte, by mma.sync.
//
// A block computes SIDE x SIDE outputs, 64 bytes of K at a time in a ring of STAGES; warps take (SIDE / 2) x 32 outputs.
// Any M and N; K is a multiple of 16, what lies beyond is read as zero.
#pragma once
#include "portable.cuh"

namespace qw {

struct Operands {
    const uint8_t *a, *b;  // [M, K], [N, K]
    const float *left, *right;  // [M], [N]
    const float* bias;  // [N] or null
    int m, n, k;
};

template <class Multiply, int SIDE> struct Gemm8 {
    typedef typename Multiply::Sum Sum;
    static constexpr int STAGES = 3, K = 64, THREADS = SIDE * 2, ROWS = SIDE / 32, TILE_BYTES = SIDE * K;

    // 16-byte chunk `at` (0 to 3) of a row; chunks are exchanged so that ldmatrix meets no bank twice.
    static QW_INLINE int chunk(int row, int at) { return row * K + ((at ^ (row >> 1 & 3)) << 4); }

    static QW_INLINE void fetch_tile(unsigned char* tile, const uint8_t* from, int first, int rows, int columns, int k) {
#pragma unroll
        for (int i = threadIdx.x; i < SIDE * 4; i += THREADS) {
            const int row = i / 4, at = i % 4;
            const bool valid = first + row < rows && k + at * 16 < columns;
            const long long offset = valid ? (long long)(first + row) * columns + k + at * 16 : 0;
            copy_async(tile + chunk(row, at), from + offset, valid);
        }
    }

    static QW_INLINE void fetch(unsigned char* stage, const Operands& o, int k) {
        fetch_tile(stage, o.a, blockIdx.y * SIDE, o.m, o.k, k);
        fetch_tile(stage + TILE_BYTES, o.b, blockIdx.x * SIDE, o.n, o.k, k);
    }

    static QW_INLINE int warp_row() { return threadIdx.x / 32 % 2 * (SIDE / 2); }
    static QW_INLINE int warp_column() { return threadIdx.x / 64 * 32; }

    static QW_INLINE void multiply(Sum (&sum)[ROWS][4][4], const unsigned char* stage) {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int s = 0; s < 2; ++s) {
            Registers4 a[ROWS], pair;
            Registers2 b[4];
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
                load_matrices(a[i], stage + chunk(warp_row() + 16 * i + lane % 16, 2 * s + lane / 16));
#pragma unroll
            for (int j = 0; j < 4; j += 2) {
                const int row = warp_column() + 8 * j + lane % 8 + lane / 16 * 8;
                load_matrices(pair, stage + TILE_BYTES + chunk(row, 2 * s + lane / 8 % 2));
                b[j][0] = pair[0], b[j][1] = pair[1], b[j + 1][0] = pair[2], b[j + 1][1] = pair[3];
            }
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) Multiply::run(sum[i][j], a[i], b[j]);
        }
    }

    template <class T> static QW_INLINE void write_row(const Operands& o, T* out, int row, const Sum (&sum)[4][4], int half) {
        const float left = o.left[row];
#pragma unroll
        for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const int column = blockIdx.x * SIDE + warp_column() + 8 * j + threadIdx.x % 4 * 2 + i;
                if (column >= o.n) continue;
                const float value = float(sum[j][2 * half + i]) * left * o.right[column];
                out[(long long)row * o.n + column] = from_float<T>(o.bias ? value + o.bias[column] : value);
            }
    }

    template <class T> static QW_INLINE void run(unsigned char* shared, const Operands& o, T* out) {
        const int steps = (o.k + K - 1) / K;
        Sum sum[ROWS][4][4] = {};
#pragma unroll
        for (int t = 0; t < STAGES - 1; ++t) {
            if (t < steps) fetch(shared + t * 2 * TILE_BYTES, o, t * K);
            commit_copies();
        }
        for (int t = 0; t < steps; ++t) {
            wait_copies<STAGES - 2>();
            __syncthreads();
            const int next = t + STAGES - 1;
            if (next < steps) fetch(shared + next % STAGES * 2 * TILE_BYTES, o, next * K);
            commit_copies();
            multiply(sum, shared + t % STAGES * 2 * TILE_BYTES);
        }
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = blockIdx.y * SIDE + warp_row() + 16 * i + threadIdx.x % 32 / 4 + 8 * half;
                if (row < o.m) write_row(o, out, row, sum[i], half);
            }
    }
};

}  // namespace qw

#define QW_GEMM8(NAME, MULTIPLY, SIDE, T)                                                                             \
    QW_KERNEL(SIDE * 2) NAME(const uint8_t* a, const uint8_t* b, const float* left, const float* right,               \
                             const float* bias, T* out, int m, int n, int k) {                                        \
        QW_DYNAMIC_SHARED(shared);                                                                                    \
        qw::Gemm8<MULTIPLY, SIDE>::run(shared, {a, b, left, right, bias, m, n, k}, out);                              \
    }
#define QW_GEMM8_ALL(PREFIX, MULTIPLY)                       \
    QW_GEMM8(PREFIX##_64_f16, MULTIPLY, 64, __half)          \
    QW_GEMM8(PREFIX##_64_bf16, MULTIPLY, 64, __nv_bfloat16)  \
    QW_GEMM8(PREFIX##_128_f16, MULTIPLY, 128, __half)        \
    QW_GEMM8(PREFIX##_128_bf16, MULTIPLY, 128, __nv_bfloat16)
