// Kernels with one fault each, for the tests of the shim.
#include <portable_host.h>
#define QW_KERNEL extern "C" __global__ void

QW_KERNEL missed_barrier(float* x) {
    if (threadIdx.x < 40) __syncthreads();
    else __shfl_xor_sync(~0u, x[0], 1);
}
QW_KERNEL ended_early(float* x) {
    if (threadIdx.x < 40) return;
    __syncthreads();
}
QW_KERNEL missed_shuffle(float* x) {
    if (threadIdx.x % 2) x[threadIdx.x] = __shfl_xor_sync(~0u, x[threadIdx.x], 1);
}
QW_KERNEL foreign_lane(float* x) {
    if (threadIdx.x < 16) x[threadIdx.x] = __shfl_sync(0xffffu, x[threadIdx.x], 20);
}
QW_KERNEL misaligned(float* x) {
    qw::Registers4 r;
    qw::load_matrices(r, x + threadIdx.x % 4);
}
QW_KERNEL no_barrier(float* y, const float* x) {
    __shared__ float s[64];
    s[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = s[63 - threadIdx.x];
}
QW_KERNEL overwritten(float* y) {
    __shared__ float s[64];
    s[threadIdx.x] = 1;
    __syncthreads();
    __syncwarp();
    y[threadIdx.x] = s[63 - threadIdx.x];
    s[threadIdx.x] = 2;
}
QW_KERNEL copy_without_wait(float* y, const float* x) {
    QW_DYNAMIC_SHARED(shared);
    qw::copy_async(shared + 16 * threadIdx.x, x + 4 * threadIdx.x);
    qw::commit_copies();
    for (int i = 0; i < 4; ++i) y[4 * threadIdx.x + i] = reinterpret_cast<float*>(shared)[4 * threadIdx.x + i];
}
QW_KERNEL beyond_the_end(float* y) { y[threadIdx.x + 1] = 1; }
