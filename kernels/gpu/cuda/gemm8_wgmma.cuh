// Products of one-byte operands through Hopper's asynchronous tensor-core instruction (wgmma, sm_90a only): see gemm8.cuh for
// what is computed.
//
// A block computes 128 x 128 outputs with two warpgroups of 64 rows each; 128 bytes of K at a time in a ring of four stages,
// filled by cp.async in the 128-byte swizzle that wgmma reads.  The CPU shim does not model wgmma: compiled, not run, without a
// GPU.
#pragma once
#include "portable.cuh"

namespace qw {

constexpr int SIDE = 128, K_BYTES = 128, STAGES = 4, TILE_BYTES = SIDE * K_BYTES, THREADS = 256, SUMS = 64;

struct Operands {
    const uint8_t *a, *b;       // [M, K], [N, K]
    const float *left, *right;  // [M], [N]
    const float* bias;          // [N] or null
    int m, n, k;
};

// A K-major tile in shared memory: address in units of 16 bytes, 1024 bytes from one group of 8 rows to the next, 128-byte swizzle.
QW_INLINE uint64_t descriptor(uint32_t address) {
    return uint64_t((address & 0x3ffff) >> 4) | uint64_t(1) << 16 | uint64_t(1024 >> 4) << 32 | uint64_t(1) << 62;
}

QW_INLINE void fetch_tile(unsigned char* tile, const uint8_t* from, int first, int rows, int columns, int k) {
#pragma unroll
    for (int pass = 0; pass < SIDE * 8 / THREADS; ++pass) {
        const int i = pass * THREADS + threadIdx.x, row = i / 8, at = i % 8;
        const bool valid = first + row < rows;
        const long long offset = (long long)(valid ? first + row : 0) * columns + k + at * 16;
        copy_async(tile + row * K_BYTES + ((at ^ (row & 7)) << 4), from + offset, valid);
    }
}

QW_INLINE void fence_registers() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }
QW_INLINE void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }

// Waits for the products; the sums pass through an empty instruction, so that the compiler reads none of them any earlier.
QW_INLINE void wait_products(float (&sums)[SUMS]) {
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
#pragma unroll
    for (int i = 0; i < SUMS; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}
QW_INLINE void wait_products(int (&sums)[SUMS]) {
    asm volatile("wgmma.wait_group.sync.aligned 0;\n" ::: "memory");
#pragma unroll
    for (int i = 0; i < SUMS; ++i) asm volatile("" : "+r"(sums[i])::"memory");
}

// `Multiply` holds the sums of a thread and adds the products of a stage to them, while later stages are fetched.
template <class Multiply> struct Hopper {
    static QW_INLINE void fetch(unsigned char* shared, const Operands& o, int t) {
        unsigned char* stage = shared + t % STAGES * 2 * TILE_BYTES;
        fetch_tile(stage, o.a, blockIdx.y * SIDE, o.m, o.k, t * K_BYTES);
        fetch_tile(stage + TILE_BYTES, o.b, blockIdx.x * SIDE, o.n, o.k, t * K_BYTES);
    }

    static QW_INLINE void write(const Operands& o, __nv_bfloat16* out, const Multiply& products) {
        const int first = blockIdx.y * SIDE + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
        for (int i = 0; i < SUMS; ++i) {
            const int row = first + i / 2 % 2 * 8, column = blockIdx.x * SIDE + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
            if (row >= o.m || column >= o.n) continue;
            const float value = float(products.sum[i]) * o.left[row] * o.right[column];
            out[(long long)row * o.n + column] = __float2bfloat16_rn(o.bias ? value + o.bias[column] : value);
        }
    }

    static QW_INLINE void run(unsigned char* shared, const Operands& o, __nv_bfloat16* out) {
        const int steps = o.k / K_BYTES;
        Multiply products;
        for (int t = 0; t < STAGES - 1; ++t) {
            if (t < steps) fetch(shared, o, t);
            commit_copies();
        }
        for (int t = 0; t < steps; ++t) {
            wait_copies<STAGES - 2>();
            asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
            __syncthreads();
            if (t + STAGES - 1 < steps) fetch(shared, o, t + STAGES - 1);
            commit_copies();
            products.add(shared + t % STAGES * 2 * TILE_BYTES, t == 0);
        }
        write(o, out, products);
    }
};

}  // namespace qw

#define QW_HOPPER(NAME, MULTIPLY)                                                                                        \
    QW_KERNEL(256) NAME(const uint8_t* a, const uint8_t* b, const float* left, const float* right, const float* bias,    \
                        __nv_bfloat16* out, int m, int n, int k) {                                                       \
        QW_DYNAMIC_SHARED(shared);                                                                                       \
        qw::Hopper<MULTIPLY>::run(shared, {a, b, left, right, bias, m, n, k}, out);                                      \
    }
