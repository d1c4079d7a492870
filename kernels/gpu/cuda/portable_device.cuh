// The GPU side of portable.cuh: PTX instructions under readable names.
#pragma once
#ifdef __CUDACC_RTC__  // NVRTC has neither <cstdint> nor INFINITY
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INFINITY __int_as_float(0x7f800000)
#else
#include <cstdint>
#endif
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#define QW_DYNAMIC_SHARED(name) extern __shared__ __align__(1024) unsigned char name[]

namespace qw {

typedef uint32_t Registers2[2];
typedef uint32_t Registers4[4];

__device__ __forceinline__ uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

// Four 8 x 8 matrices of 16-bit values from shared memory; lane i gives the address of row i % 8 of matrix i / 8.
__device__ __forceinline__ void load_matrices(Registers4& r, const void* row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
}

// c (16 x 8, float) += a (16 x 16, half, row major) * b (16 x 8, half, column major)
__device__ __forceinline__ void multiply_f16(float (&c)[4], const Registers4& a, const Registers2& b) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else  // Turing multiplies 8 columns at a time
#pragma unroll
    for (int half = 0; half < 2; ++half)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};\n"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[2 * half]), "r"(a[2 * half + 1]), "r"(b[half]));
#endif
}

// c (16 x 8, int) += a (16 x 32, int8, row major) * b (32 x 8, int8, column major)
__device__ __forceinline__ void multiply_s8(int (&c)[4], const Registers4& a, const Registers2& b) {
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};\n"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else  // Turing multiplies 8 rows and 16 columns at a time
#pragma unroll
    for (int part = 0; part < 4; ++part)
        asm volatile("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1},{%2},{%3},{%0,%1};\n"
                     : "+r"(c[2 * (part % 2)]), "+r"(c[2 * (part % 2) + 1]) : "r"(a[part]), "r"(b[part / 2]));
#endif
}

#if __CUDA_ARCH__ >= 890
// c (16 x 8, float) += a (16 x 32, e4m3, row major) * b (32 x 8, e4m3, column major)
__device__ __forceinline__ void multiply_e4m3(float (&c)[4], const Registers4& a, const Registers2& b) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};\n"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

// Starts copying 16 bytes to shared memory, or 16 zeros where `valid` is false; done after wait_copies.
__device__ __forceinline__ void copy_async(void* to, const void* from, bool valid = true) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global.L2::128B [%0],[%1],16,%2;\n"
                 ::"r"(shared_address(to)), "l"(from), "r"(valid ? 16 : 0) : "memory");
#else
    *(uint4*)to = valid ? *(const uint4*)from : make_uint4(0, 0, 0, 0);
#endif
}
// Closes the group of this thread's copies since the last call.
__device__ __forceinline__ void commit_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
}
// Waits until at most PENDING of this thread's groups are under way.
template <int PENDING> __device__ __forceinline__ void wait_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;\n" ::"n"(PENDING) : "memory");
#endif
}

// Any logic function of three words; bit i of TABLE is the result for the bits of i = 4a + 2b + c.
template <int TABLE> __device__ __forceinline__ uint32_t logic3(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t result;
    asm("lop3.b32 %0,%1,%2,%3,%4;\n" : "=r"(result) : "r"(a), "r"(b), "r"(c), "n"(TABLE));
    return result;
}

}  // namespace qw
