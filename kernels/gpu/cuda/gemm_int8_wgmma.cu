// The INT8 product of gemm_int8.cu through wgmma: see gemm8_wgmma.cuh.  The tensor core's 32-bit sums are exact, so that they stay
// in the registers in which the products are made.
#include "gemm8_wgmma.cuh"

namespace qw {

// d (64 x 128) = a (64 x 32) * b (32 x 128), added to d unless `fresh`.
QW_INLINE void multiply_async(int (&d)[SUMS], uint64_t a, uint64_t b, bool fresh) {
    asm volatile(
        "{\n.reg .pred add;\nsetp.eq.b32 add, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, %64, %65, add;\n}\n"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7]),
          "+r"(d[8]), "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]), "+r"(d[14]), "+r"(d[15]),
          "+r"(d[16]), "+r"(d[17]), "+r"(d[18]), "+r"(d[19]), "+r"(d[20]), "+r"(d[21]), "+r"(d[22]), "+r"(d[23]),
          "+r"(d[24]), "+r"(d[25]), "+r"(d[26]), "+r"(d[27]), "+r"(d[28]), "+r"(d[29]), "+r"(d[30]), "+r"(d[31]),
          "+r"(d[32]), "+r"(d[33]), "+r"(d[34]), "+r"(d[35]), "+r"(d[36]), "+r"(d[37]), "+r"(d[38]), "+r"(d[39]),
          "+r"(d[40]), "+r"(d[41]), "+r"(d[42]), "+r"(d[43]), "+r"(d[44]), "+r"(d[45]), "+r"(d[46]), "+r"(d[47]),
          "+r"(d[48]), "+r"(d[49]), "+r"(d[50]), "+r"(d[51]), "+r"(d[52]), "+r"(d[53]), "+r"(d[54]), "+r"(d[55]),
          "+r"(d[56]), "+r"(d[57]), "+r"(d[58]), "+r"(d[59]), "+r"(d[60]), "+r"(d[61]), "+r"(d[62]), "+r"(d[63])
        : "l"(a), "l"(b), "r"(int(fresh)));
}

struct HopperInt8 {
    int sum[SUMS] = {};

    QW_INLINE void add(const unsigned char* stage, bool first) {
        const uint32_t a = shared_address(stage) + threadIdx.x / 128 * 64 * K_BYTES, b = shared_address(stage + TILE_BYTES);
        fence_registers();
#pragma unroll
        for (int s = 0; s < 4; ++s) multiply_async(sum, descriptor(a + 32 * s), descriptor(b + 32 * s), first && s == 0);
        commit_products();
        wait_products(sum);
    }
};

}  // namespace qw

QW_HOPPER(gemm_int8_wgmma_bf16, qw::HopperInt8)
