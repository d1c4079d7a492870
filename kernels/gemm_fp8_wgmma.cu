// The FP8 product of gemm_fp8.cu through Hopper's asynchronous tensor-core instruction (wgmma, sm_90a only).
//
// A block computes 128 x 128 outputs with two warpgroups of 64 rows each; 128 bytes of K at a time in a ring of four stages,
// filled by cp.async in the 128-byte swizzle that wgmma reads.  Sums of 128 products are added to float registers of their
// own, because the tensor core keeps fewer bits than float.  The CPU shim does not model wgmma: compiled, not run, without a GPU.
#include "portable.cuh"

namespace qw {

constexpr int SIDE = 128, K_BYTES = 128, STAGES = 4, TILE_BYTES = SIDE * K_BYTES, THREADS = 256;

// A K-major tile in shared memory: address in units of 16 bytes, 1024 bytes from one group of 8 rows to the next, 128-byte swizzle.
QW_INLINE uint64_t descriptor(uint32_t address) {
    return uint64_t((address & 0x3ffff) >> 4) | uint64_t(1) << 16 | uint64_t(1024 >> 4) << 32 | uint64_t(1) << 62;
}

// d (64 x 128) = a (64 x 32) * b (32 x 128), added to d unless `fresh`.
QW_INLINE void multiply_async(float (&d)[64], uint64_t a, uint64_t b, bool fresh) {
    asm volatile(
        "{\n.reg .pred add;\nsetp.eq.b32 add, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, %64, %65, add, 1, 1;\n}\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "l"(a), "l"(b), "r"(int(fresh)));
}

QW_INLINE void fetch_tile(unsigned char* tile, const uint8_t* from, int first, int rows, int columns, int k) {
#pragma unroll
    for (int i = threadIdx.x; i < SIDE * 8; i += THREADS) {
        const int row = i / 8, at = i % 8;
        const bool valid = first + row < rows;
        const long long offset = (long long)(valid ? first + row : 0) * columns + k + at * 16;
        copy_async(tile + row * K_BYTES + ((at ^ (row & 7)) << 4), from + offset, valid);
    }
}

QW_INLINE void multiply_stage(float (&sum)[64], const unsigned char* stage) {
    const uint32_t a = shared_address(stage) + threadIdx.x / 128 * 64 * K_BYTES, b = shared_address(stage + TILE_BYTES);
    float product[64];
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
    for (int s = 0; s < 4; ++s) multiply_async(product, descriptor(a + 32 * s), descriptor(b + 32 * s), s == 0);
    asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" ::: "memory");
#pragma unroll
    for (int i = 0; i < 64; ++i) sum[i] += product[i];
}

}  // namespace qw

QW_KERNEL(256) gemm_fp8_wgmma_bf16(const uint8_t* a, const uint8_t* b, const float* left, const float* right,
                                   const float* bias, __nv_bfloat16* out, int m, int n, int k) {
    using namespace qw;
    QW_DYNAMIC_SHARED(shared);
    const int m0 = blockIdx.y * SIDE, n0 = blockIdx.x * SIDE, steps = k / K_BYTES;
    auto fetch = [&](int t) {
        unsigned char* stage = shared + t % STAGES * 2 * TILE_BYTES;
        fetch_tile(stage, a, m0, m, k, t * K_BYTES);
        fetch_tile(stage + TILE_BYTES, b, n0, n, k, t * K_BYTES);
    };
    float sum[64] = {};
    for (int t = 0; t < STAGES - 1; ++t) {
        if (t < steps) fetch(t);
        commit_copies();
    }
    for (int t = 0; t < steps; ++t) {
        wait_copies<STAGES - 2>();
        asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
        __syncthreads();
        if (t + STAGES - 1 < steps) fetch(t + STAGES - 1);
        commit_copies();
        multiply_stage(sum, shared + t % STAGES * 2 * TILE_BYTES);
    }
    const int first = m0 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
#pragma unroll
    for (int i = 0; i < 64; ++i) {
        const int row = first + i / 2 % 2 * 8, column = n0 + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2;
        if (row >= m || column >= n) continue;
        const float value = sum[i] * left[row] * right[column];
        out[(long long)row * n + column] = __float2bfloat16_rn(bias ? value + bias[column] : value);
    }
}
