// The FP8 product of gemm_fp8.cu through wgmma: see gemm8_wgmma.cuh.  Sums of 128 products are added to float registers of their
// own, because the tensor core keeps fewer bits than float.
#include "gemm8_wgmma.cuh"

namespace qw {

// d (64 x 128) = a (64 x 32) * b (32 x 128), added to d unless `fresh`.
QW_INLINE void multiply_async(float (&d)[SUMS], uint64_t a, uint64_t b, bool fresh) {
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

struct HopperE4M3 {
    float sum[SUMS] = {};

    QW_INLINE void add(const unsigned char* stage, bool) {
        const uint32_t a = shared_address(stage) + threadIdx.x / 128 * 64 * K_BYTES, b = shared_address(stage + TILE_BYTES);
        float product[SUMS];
        fence_registers();
#pragma unroll
        for (int s = 0; s < 4; ++s) multiply_async(product, descriptor(a + 32 * s), descriptor(b + 32 * s), s == 0);
        commit_products();
        wait_products(product);
#pragma unroll
        for (int i = 0; i < SUMS; ++i) sum[i] += product[i];
    }
};

}  // namespace qw

QW_HOPPER(gemm_fp8_wgmma_bf16, qw::HopperE4M3)
