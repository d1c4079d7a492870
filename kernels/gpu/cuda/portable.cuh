// What every kernel includes: the same source compiles with NVRTC for a GPU and with g++ for the CPU.
//
// On a GPU the instructions below are PTX.  On the CPU <portable_host.h> (tests/kernels/shim) gives them the same names
// and meanings, one fiber for each CUDA thread.  Kernels use these names and plain CUDA C++, nothing else.
#pragma once

#if defined(__CUDACC_RTC__) || defined(__CUDACC__)
#include "portable_device.cuh"
#else
#include <portable_host.h>
#endif

#define QW_INLINE __device__ __forceinline__
// A kernel with at most THREADS threads in a block.
#define QW_KERNEL(THREADS) extern "C" __global__ void __launch_bounds__(THREADS)

namespace qw {

constexpr unsigned ALL_LANES = 0xffffffffu;

struct Max { template <class T> static QW_INLINE T of(T a, T b) { return a > b ? a : b; } };
struct Min { template <class T> static QW_INLINE T of(T a, T b) { return a < b ? a : b; } };
struct Sum { template <class T> static QW_INLINE T of(T a, T b) { return a + b; } };

// Combines a value over `lanes` neighbouring lanes (a power of two); every lane gets the result.
template <class Operation, class T> QW_INLINE T reduce_lanes(T value, int lanes = 32) {
    for (int offset = lanes / 2; offset > 0; offset /= 2)
        value = Operation::of(value, __shfl_xor_sync(ALL_LANES, value, offset));
    return value;
}

QW_INLINE float to_float(float x) { return x; }
QW_INLINE float to_float(__half x) { return __half2float(x); }
QW_INLINE float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T> QW_INLINE T from_float(float x);
template <> QW_INLINE float from_float<float>(float x) { return x; }
template <> QW_INLINE __half from_float<__half>(float x) { return __float2half_rn(x); }
template <> QW_INLINE __nv_bfloat16 from_float<__nv_bfloat16>(float x) { return __float2bfloat16_rn(x); }

// COUNT values that load and store together, 16 bytes at a time where they are that many.
template <class T, int COUNT> struct alignas(sizeof(T) * COUNT > 16 ? 16 : sizeof(T) * COUNT) Pack { T at[COUNT]; };

template <class T, int COUNT> QW_INLINE Pack<T, COUNT> load(const T* from) {
    return *reinterpret_cast<const Pack<T, COUNT>*>(from);
}
template <class T, int COUNT> QW_INLINE void store(T* to, const Pack<T, COUNT>& pack) {
    *reinterpret_cast<Pack<T, COUNT>*>(to) = pack;
}

QW_INLINE bool is_finite(float x) { return (__float_as_uint(x) & 0x7f800000u) != 0x7f800000u; }

}  // namespace qw
