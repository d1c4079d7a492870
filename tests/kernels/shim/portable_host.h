// The CPU side of portable.cuh: CUDA's names on top of grid.h.  Conversions are NVIDIA's own, from its header files.
//
// Modelled: barriers, shuffles, votes, atomics, ldmatrix, mma (fragment layouts after the PTX manual), cp.async, which
// takes effect only at its wait and leaves its target poisoned until then.  Not modelled: wgmma, TMA, the order of
// summation inside a tensor core, memory ordering, occupancy.
#pragma once
#include <cmath>
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <vector_functions.h>

#include "grid.h"

#undef __global__
#undef __device__
#undef __shared__
#undef __launch_bounds__
#undef __forceinline__
#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __restrict__

#define threadIdx (shim::current->thread)
#define blockIdx shim::block_index
#define blockDim shim::block_size
#define gridDim shim::grid_size
#define __syncthreads() shim::wait_at_barrier()
#define QW_DYNAMIC_SHARED(name) unsigned char* name = shim::dynamic_shared.get()

using std::max;
using std::min;

inline void __syncwarp(uint32_t mask = ~0u) { shim::meet(mask, shim::Kind::sync, "", 1); }

template <class T> T shim_shuffle(uint32_t mask, T value, int source) {
    shim::Deposits& all = shim::meet(mask, shim::Kind::shuffle, &value, sizeof value);
    if (!(mask >> source & 1)) shim::fail("a shuffle reads a lane outside its mask");
    T result;
    memcpy(&result, all[source], sizeof result);
    return result;
}
template <class T> T __shfl_xor_sync(uint32_t mask, T value, int lanes, int width = 32) {
    int lane = shim::current->lane, source = lane ^ lanes;
    return shim_shuffle(mask, value, source / width <= lane / width ? source : lane);
}
template <class T> T __shfl_down_sync(uint32_t mask, T value, int delta, int width = 32) {
    int lane = shim::current->lane;
    return shim_shuffle(mask, value, lane % width + delta < width ? lane + delta : lane);
}
template <class T> T __shfl_sync(uint32_t mask, T value, int source, int width = 32) {
    int lane = shim::current->lane;
    return shim_shuffle(mask, value, lane / width * width + source % width);
}
template <class T, class U> T atomicAdd(T* address, U value) {
    shim::need_alignment(address, sizeof(T), "an atomic address is misaligned");
    T old, now;
    __atomic_load(address, &old, __ATOMIC_RELAXED);
    do now = T(old + value);
    while (!__atomic_compare_exchange(address, &old, &now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}

inline int __float_as_int(float x) { int i; memcpy(&i, &x, 4); return i; }
inline unsigned __float_as_uint(float x) { unsigned i; memcpy(&i, &x, 4); return i; }
inline float __int_as_float(int i) { float x; memcpy(&x, &i, 4); return x; }
inline float __uint_as_float(unsigned i) { float x; memcpy(&x, &i, 4); return x; }
inline int __float2int_rn(float x) {  // saturating, NaN is 0, as the instruction does
    if (std::isnan(x)) return 0;
    return x >= 2147483648.f ? INT32_MAX : x < -2147483648.f ? INT32_MIN : int(std::nearbyintf(x));
}
inline __half __hfma(__half a, __half b, __half c) {  // the double product is exact
    return __double2half((double)__half2float(a) * __half2float(b) + __half2float(c));
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
    return __halves2half2(__hfma(__low2half(a), __low2half(b), __low2half(c)),
                          __hfma(__high2half(a), __high2half(b), __high2half(c)));
}
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline int __dp4a(int a, int b, int c) {
    for (int i = 0; i < 4; ++i) c += int(int8_t(a >> (8 * i))) * int(int8_t(b >> (8 * i)));
    return c;
}
inline float __expf(float x) { return std::exp(x); }

namespace qw {

typedef uint32_t Registers2[2];
typedef uint32_t Registers4[4];

inline void load_matrices(Registers4& r, const void* row) {
    shim::need_alignment(row, 16, "an ldmatrix address is not a multiple of 16");
    shim::Deposits& rows = shim::meet(~0u, shim::Kind::matrices, &row, sizeof row);
    int lane = shim::current->lane;
    for (int matrix = 0; matrix < 4; ++matrix) {
        const char* from;
        memcpy(&from, rows[matrix * 8 + lane / 4], sizeof from);
        memcpy(&r[matrix], from + 4 * (lane % 4), 4);
    }
    __syncwarp();
}

// Every lane brings its fragments of a (16 bytes) and b (8 bytes) and computes the four results that are its own.
// `value(word, i)` is element i of a 32-bit register that holds COUNT.
template <int COUNT, class T, class Value>
inline void multiply(T (&c)[4], const Registers4& a, const Registers2& b, Value value) {
    uint32_t brought[6] = {a[0], a[1], a[2], a[3], b[0], b[1]};
    shim::Deposits& all = shim::meet(~0u, shim::Kind::multiply, brought, sizeof brought);
    int lane = shim::current->lane;
    for (int i = 0; i < 4; ++i) {
        int row = lane / 4 + 8 * (i / 2), column = 2 * (lane % 4) + i % 2;
        for (int half = 0; half < 2; ++half)
            for (int quad = 0; quad < 4; ++quad) {
                uint32_t left, right;
                memcpy(&left, all[row % 8 * 4 + quad] + 4 * (row / 8 + 2 * half), 4);
                memcpy(&right, all[column * 4 + quad] + 16 + 4 * half, 4);
                for (int e = 0; e < COUNT; ++e) c[i] += value(left, e) * value(right, e);
            }
    }
}
inline void multiply_s8(int (&c)[4], const Registers4& a, const Registers2& b) {
    multiply<4>(c, a, b, [](uint32_t word, int e) { return int(int8_t(word >> (8 * e))); });
}
inline void multiply_f16(float (&c)[4], const Registers4& a, const Registers2& b) {
    multiply<2>(c, a, b, [](uint32_t word, int e) {
        __half_raw raw;
        raw.x = uint16_t(word >> (16 * e));
        return __half2float(__half(raw));
    });
}
inline void multiply_e4m3(float (&c)[4], const Registers4& a, const Registers2& b) {
    multiply<4>(c, a, b, [](uint32_t word, int e) {
        __nv_fp8_e4m3 x;
        x.__x = uint8_t(word >> (8 * e));
        return float(x);
    });
}

inline void copy_async(void* to, const void* from, bool valid = true) {
    shim::need_alignment(to, 16, "a cp.async target is not a multiple of 16");
    shim::need_alignment(from, 16, "a cp.async source is not a multiple of 16");
    memset(to, 0xFF, 16);
    shim::current->copies.push_back({to, from, valid, shim::current->groups});
}
inline void commit_copies() { ++shim::current->groups; }
template <int PENDING> inline void wait_copies() {
    auto& copies = shim::current->copies;
    auto ready = [](const shim::Copy& copy) { return copy.group < shim::current->groups - PENDING; };
    for (auto& copy : copies)
        if (ready(copy)) copy.valid ? memcpy(copy.to, copy.from, 16) : memset(copy.to, 0, 16);
    copies.erase(std::remove_if(copies.begin(), copies.end(), ready), copies.end());
}

template <int TABLE> inline uint32_t logic3(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t result = 0;
    for (int i = 0; i < 8; ++i)
        if (TABLE >> i & 1) result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return result;
}

}  // namespace qw

namespace shim {

struct Entry {
    std::string name;
    std::function<void(void**)> call;
};
inline std::vector<Entry>& entries() {
    static std::vector<Entry> all;
    return all;
}
template <class... A, size_t... I> void call_with(void (*f)(A...), void** arguments, std::index_sequence<I...>) {
    f(*(A*)arguments[I]...);
}
template <class... A> bool add_entry(const char* name, void (*f)(A...)) {
    entries().push_back({name, [f](void** a) { call_with(f, a, std::index_sequence_for<A...>{}); }});
    return true;
}

}  // namespace shim

#define SHIM_ENTRY(name) static bool shim_has_##name = shim::add_entry(#name, name);

// Runs a kernel; returns null, or what went wrong.
extern "C" inline __attribute__((used, visibility("default"))) const char* shim_launch(
    const char* name, const unsigned* grid, const unsigned* block, size_t shared, void** arguments, int order,
    unsigned long long seed) {
    try {
        for (auto& entry : shim::entries()) {
            if (entry.name != name) continue;
            shim::kernel = [&] { entry.call(arguments); };
            shim::run_grid(dim3(grid[0], grid[1], grid[2]), dim3(block[0], block[1], block[2]), shared,
                           shim::Order(order), seed);
            return shim::failure.empty() ? nullptr : shim::failure.c_str();
        }
        shim::failure = std::string("there is no kernel ") + name;
    } catch (const std::exception& error) {
        shim::failure = error.what();
    }
    return shim::failure.c_str();
}
