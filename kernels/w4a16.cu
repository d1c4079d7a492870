// y = x W^T with half activations x [M, K] and 4-bit weights in groups along K: W[n, k] = scale * (code - zero).
//
// Weights are stored once, in the order in which mma.sync takes them, for both kernels: word [K/16][N/16][lane] holds eight
// codes, {b0, b1} of columns n and {b0, b1} of columns n + 8, the two halves of a register in nibbles i and i + 4.
#include "portable.cuh"

namespace qw {

constexpr uint32_t TABLE_AND_OR = (0xf0 & 0xcc) | 0xaa;

QW_INLINE __half2 as_half2(uint32_t x) { return *reinterpret_cast<__half2*>(&x); }
QW_INLINE uint32_t as_word(__half2 x) { return *reinterpret_cast<uint32_t*>(&x); }

// Eight codes to eight halves (code - 8): 0x6400 is 1024 in half, whose low bits then count units.
QW_INLINE void unpack(uint32_t word, Registers4& out) {
    const uint32_t low = 0x000f000f, high = 0x00f000f0, magic = 0x64006400;
    const __half2 bias = as_half2(0x64086408), sixteenth = as_half2(0x2c002c00), shift = as_half2(0xd480d480);
    const uint32_t upper = word >> 8;
    out[0] = as_word(__hsub2(as_half2(logic3<TABLE_AND_OR>(word, low, magic)), bias));
    out[1] = as_word(__hfma2(as_half2(logic3<TABLE_AND_OR>(word, high, magic)), sixteenth, shift));
    out[2] = as_word(__hsub2(as_half2(logic3<TABLE_AND_OR>(upper, low, magic)), bias));
    out[3] = as_word(__hfma2(as_half2(logic3<TABLE_AND_OR>(upper, high, magic)), sixteenth, shift));
}

struct Weights {
    const uint32_t* words;
    const __half* scales;  // [K / group, N]
    const __half* zeros;   // [K / group, N], the zero point minus 8; null if all are 8
    int rows, columns, group;  // N, K
};

QW_INLINE __half2 twice(const __half* from) { return __half2half2(*from); }

// M up to 8.  A warp takes 64 outputs and a part of K; weights go from memory to the tensor core without shared memory.
// Scales are applied to the sum of a group.  Block (n / 64, split), eight warps, sums in part[split][M][N].
template <bool ZEROS> QW_INLINE void few_rows(const __half* x, const Weights& w, float* part, int m, int groups_per_split) {
    constexpr int WARPS = 8, TILES = 8, WIDTH = 64;
    __shared__ float sums[WARPS][8][WIDTH];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, pair = lane % 4 * 2, n0 = blockIdx.x * WIDTH;
    const int steps = w.group / 16, tiles = w.rows / 16;
    const int last = min(w.columns / w.group, int(blockIdx.y + 1) * groups_per_split);
    float total[TILES][2] = {};
    for (int g = blockIdx.y * groups_per_split + warp; g < last; g += WARPS) {
        float sum[TILES][4] = {};
        __half2 zero[TILES];
        if (ZEROS)
            for (int t = 0; t < TILES; ++t) zero[t] = twice(w.zeros + (long long)g * w.rows + n0 + 8 * t + row);
#pragma unroll 4
        for (int s = 0; s < steps; ++s) {
            const int k = g * w.group + 16 * s;
            Registers4 a = {0, 0, 0, 0};
            if (row < m) {
                const __half* from = x + (long long)row * w.columns + k + pair;
                a[0] = *reinterpret_cast<const uint32_t*>(from);
                a[2] = *reinterpret_cast<const uint32_t*>(from + 8);
            }
            const uint32_t* from = w.words + ((long long)(k / 16) * tiles + n0 / 16) * 32 + lane;
#pragma unroll
            for (int t = 0; t < TILES; t += 2) {
                Registers4 b;
                unpack(from[16 * t], b);
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    Registers2 half = {b[2 * i], b[2 * i + 1]};
                    if (ZEROS)
                        for (int j = 0; j < 2; ++j) half[j] = as_word(__hsub2(as_half2(half[j]), zero[t + i]));
                    multiply_f16(sum[t + i], a, half);
                }
            }
        }
#pragma unroll
        for (int t = 0; t < TILES; ++t) {
            const __half2 scale = *reinterpret_cast<const __half2*>(w.scales + (long long)g * w.rows + n0 + 8 * t + pair);
            total[t][0] += sum[t][0] * __low2float(scale);
            total[t][1] += sum[t][1] * __high2float(scale);
        }
    }
#pragma unroll
    for (int t = 0; t < TILES; ++t)
        for (int i = 0; i < 2; ++i) sums[warp][row][8 * t + pair + i] = total[t][i];
    __syncthreads();
    for (int i = threadIdx.x; i < m * WIDTH; i += blockDim.x) {
        float all = 0;
        for (int v = 0; v < WARPS; ++v) all += sums[v][i / WIDTH][i % WIDTH];
        part[((long long)blockIdx.y * m + i / WIDTH) * w.rows + n0 + i % WIDTH] = all;
    }
}

// A tile of 16 * ROWS by 128 outputs, 64 of K at a time in a ring of STAGES; four warps with 32 columns each.
template <int ROWS, bool ZEROS> struct Tile {
    static constexpr int STAGES = 4, M = 16 * ROWS, N = 128, K = 64;
    static constexpr int A_BYTES = M * K * 2, B_BYTES = N * K / 2;

    // 16-byte chunk of the activation tile; chunks are exchanged so that ldmatrix meets no bank twice.
    static QW_INLINE int chunk(int row, int at) { return row * (K * 2) + ((at ^ (row & 7)) << 4); }

    static QW_INLINE void fetch(unsigned char* shared, const __half* x, const Weights& w, int m, int k) {
        const int m0 = blockIdx.y * M;
#pragma unroll
        for (int i = threadIdx.x; i < M * 8; i += 128) {
            const int row = i / 8, at = i % 8;
            const bool valid = m0 + row < m;
            copy_async(shared + chunk(row, at), x + (long long)(valid ? m0 + row : 0) * w.columns + k + at * 8, valid);
        }
#pragma unroll
        for (int i = threadIdx.x; i < B_BYTES / 16; i += 128) {
            const long long word = ((long long)(k / 16 + i / 64) * (w.rows / 16) + blockIdx.x * 8) * 32 + i % 64 * 4;
            copy_async(shared + A_BYTES + i * 16, w.words + word);
        }
    }

    static QW_INLINE void multiply(float (&sum)[ROWS][4][4], const unsigned char* shared, const Weights& w, int k) {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        const uint32_t* words = reinterpret_cast<const uint32_t*>(shared + A_BYTES);
        const long long at = (long long)(k / w.group) * w.rows + blockIdx.x * N + warp * 32 + lane / 4;
        __half2 scale[4], zero[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            scale[j] = twice(w.scales + at + 8 * j);
            if (ZEROS) zero[j] = twice(w.zeros + at + 8 * j);
        }
#pragma unroll
        for (int s = 0; s < K / 16; ++s) {
            Registers4 a[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; ++i) load_matrices(a[i], shared + chunk(16 * i + lane % 16, 2 * s + lane / 16));
#pragma unroll
            for (int j = 0; j < 4; j += 2) {
                Registers4 b;
                unpack(words[s * 256 + (warp * 2 + j / 2) * 32 + lane], b);
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    Registers2 half;
#pragma unroll
                    for (int i = 0; i < 2; ++i) {
                        __half2 value = as_half2(b[2 * h + i]);
                        if (ZEROS) value = __hsub2(value, zero[j + h]);
                        half[i] = as_word(__hmul2(value, scale[j + h]));
                    }
#pragma unroll
                    for (int i = 0; i < ROWS; ++i) multiply_f16(sum[i][j + h], a[i], half);
                }
            }
        }
    }

    static QW_INLINE void write(const float (&sum)[ROWS][4][4], float* part, int m, int rows) {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int row = blockIdx.y * M + 16 * i + lane / 4 + 8 * h;
                if (row >= m) continue;
                float* to = part + ((long long)blockIdx.z * m + row) * rows + blockIdx.x * N + warp * 32 + lane % 4 * 2;
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    *reinterpret_cast<float2*>(to + 8 * j) = make_float2(sum[i][j][2 * h], sum[i][j][2 * h + 1]);
            }
    }

    // Block (n / 128, m / M, split) sums k_per_split of K into part[split][M][N].
    static QW_INLINE void run(unsigned char* shared, const __half* x, const Weights& w, float* part, int m, int k_per_split) {
        const int first = blockIdx.z * k_per_split, steps = (min(w.columns, first + k_per_split) - first) / K;
        float sum[ROWS][4][4] = {};
#pragma unroll
        for (int t = 0; t < STAGES - 1; ++t) {
            if (t < steps) fetch(shared + t * (A_BYTES + B_BYTES), x, w, m, first + t * K);
            commit_copies();
        }
        for (int t = 0; t < steps; ++t) {
            wait_copies<STAGES - 2>();
            __syncthreads();
            const int next = t + STAGES - 1;
            if (next < steps) fetch(shared + next % STAGES * (A_BYTES + B_BYTES), x, w, m, first + next * K);
            commit_copies();
            multiply(sum, shared + t % STAGES * (A_BYTES + B_BYTES), w, first + t * K);
        }
        write(sum, part, m, w.rows);
    }
};

}  // namespace qw

#define W4A16_ARGUMENTS                                                                                              \
    const __half *x, const uint32_t *words, const __half *scales, const __half *zeros, float *part, int m, int rows, \
        int columns, int group, int per_split
#define W4A16_FEW(NAME, ZEROS)                                                                        \
    QW_KERNEL(256) w4a16_few##NAME(W4A16_ARGUMENTS) {                                                 \
        qw::few_rows<ZEROS>(x, {words, scales, zeros, rows, columns, group}, part, m, per_split);     \
    }
#define W4A16_TILE(NAME, ROWS, ZEROS)                                                                                 \
    QW_KERNEL(128) w4a16_tile##NAME(W4A16_ARGUMENTS) {                                                                \
        QW_DYNAMIC_SHARED(shared);                                                                                    \
        qw::Tile<ROWS, ZEROS>::run(shared, x, {words, scales, zeros, rows, columns, group}, part, m, per_split);      \
    }
W4A16_FEW(, false)
W4A16_FEW(_zeros, true)
W4A16_TILE(16, 1, false)
W4A16_TILE(16_zeros, 1, true)
W4A16_TILE(32, 2, false)
W4A16_TILE(32_zeros, 2, true)
W4A16_TILE(64, 4, false)
W4A16_TILE(64_zeros, 4, true)

// Adds the parts of a split K, and the bias if there is one.
QW_KERNEL(256) w4a16_sum(const float* part, const __half* bias, __half* out, int splits, long long count, int rows) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float all = bias ? __half2float(bias[i % rows]) : 0.f;
    for (int s = 0; s < splits; ++s) all += part[s * count + i];
    out[i] = __float2half_rn(all);
}
