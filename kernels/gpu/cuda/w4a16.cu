// y = x W^T with half activations x [M, K] and 4-bit weights in groups along K: W[n, k] = scale * (code - zero).
//
// Weights are stored once, in the order in which mma.sync takes them, for all kernels: word [K/16][N/32][lane][half] holds
// eight codes, {b0, b1} of columns n and {b0, b1} of columns n + 8 (n from 16 * half), the two halves of a register in
// nibbles i and i + 4.  N is filled up to a multiple of 128 with scales of zero.
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
    int rows, columns, group;  // N, K; the group is a power of two
};

// Where sums go: with several parts of K to part[split][M][N], to be added; else, with the bias, to out[M][wanted].
struct Result {
    float* part;
    __half* out;
    const __half* bias;
    int m, rows, wanted;
    QW_INLINE void write(int split, int row, int column, float sum) const {
        if (part) {
            part[((long long)split * m + row) * rows + column] = sum;
        } else if (column < wanted) {
            out[(long long)row * wanted + column] = __float2half_rn(bias ? sum + __half2float(bias[column]) : sum);
        }
    }
};

QW_INLINE __half2 twice(const __half* from) { return __half2half2(*from); }
QW_INLINE Pack<uint32_t, 2> two_words(const uint32_t* from) { return load<uint32_t, 2>(from); }

// M up to 8.  A warp takes 64 outputs and a part of K; weights go from memory to the tensor core without shared memory, 64
// of K loaded ahead.  Scales are applied to the sum of a group.  Block (n / 64, split).
template <bool ZEROS, int WARPS> struct FewRows {
    static constexpr int TILES = 8, WIDTH = 64, STEPS = 4;
    const __half* x;
    const Weights& w;
    int m;
    float total[TILES][2], sum[TILES][4];
    __half2 zero[TILES];

    QW_INLINE FewRows(const __half* values, const Weights& weights, int count) : x(values), w(weights), m(count) {
#pragma unroll
        for (int t = 0; t < TILES; ++t) {
            total[t][0] = total[t][1] = 0.f;
            sum[t][0] = sum[t][1] = sum[t][2] = sum[t][3] = 0.f;
            zero[t] = as_half2(0);
        }
    }
    static QW_INLINE int lane() { return threadIdx.x % 32; }
    static QW_INLINE int first() { return blockIdx.x * WIDTH; }

    QW_INLINE void begin_group(int k) {
        const __half* from = w.zeros + (long long)(k / w.group) * w.rows + first() + lane() / 4;
#pragma unroll
        for (int t = 0; t < TILES; ++t) zero[t] = twice(from + 8 * t);
    }
    QW_INLINE void end_group(int k) {
        const __half* from = w.scales + (long long)(k / w.group) * w.rows + first() + lane() % 4 * 2;
#pragma unroll
        for (int t = 0; t < TILES; ++t) {
            const __half2 scale = *reinterpret_cast<const __half2*>(from + 8 * t);
            total[t][0] += sum[t][0] * __low2float(scale);
            total[t][1] += sum[t][1] * __high2float(scale);
            sum[t][0] = sum[t][1] = 0.f;
        }
    }
    QW_INLINE void multiply(const Registers2& a, uint32_t word, int t) {
        const Registers4 left = {a[0], 0, a[1], 0};
        Registers4 b;
        unpack(word, b);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            Registers2 half = {b[2 * i], b[2 * i + 1]};
            if (ZEROS)
                for (int j = 0; j < 2; ++j) half[j] = as_word(__hsub2(as_half2(half[j]), zero[t + i]));
            multiply_f16(sum[t + i], left, half);
        }
    }
    // 64 of K.
    QW_INLINE void span(int k) {
        Pack<uint32_t, 2> words[STEPS][2];
        Registers2 a[STEPS];
#pragma unroll
        for (int s = 0; s < STEPS; ++s) {
            const long long at = ((long long)(k / 16 + s) * (w.rows / 32) + first() / 32) * 64 + 2 * lane();
            words[s][0] = two_words(w.words + at);
            words[s][1] = two_words(w.words + at + 64);
            a[s][0] = a[s][1] = 0;
            if (lane() / 4 >= m) continue;
            const __half* from = x + (long long)(lane() / 4) * w.columns + k + 16 * s + lane() % 4 * 2;
            a[s][0] = *reinterpret_cast<const uint32_t*>(from);
            a[s][1] = *reinterpret_cast<const uint32_t*>(from + 8);
        }
#pragma unroll
        for (int s = 0; s < STEPS; ++s) {
            const int at = k + 16 * s;
            if (ZEROS && (at & (w.group - 1)) == 0) begin_group(at);
#pragma unroll
            for (int t = 0; t < TILES; t += 2) multiply(a[s], words[s][t / 4].at[t / 2 % 2], t);
            if (((at + 16) & (w.group - 1)) == 0) end_group(at);
        }
    }
    QW_INLINE void run(const Result& to, int units_per_split) {
        __shared__ float sums[WARPS][8][WIDTH];
        const int warp = threadIdx.x / 32, unit = max(w.group, 16 * STEPS);
        const int last = min(w.columns / unit, int(blockIdx.y + 1) * units_per_split);
        for (int u = blockIdx.y * units_per_split + warp; u < last; u += WARPS)
            for (int k = u * unit; k < (u + 1) * unit; k += 16 * STEPS) span(k);
#pragma unroll
        for (int t = 0; t < TILES; ++t)
            for (int i = 0; i < 2; ++i) sums[warp][lane() / 4][8 * t + lane() % 4 * 2 + i] = total[t][i];
        __syncthreads();
        for (int i = threadIdx.x; i < m * WIDTH; i += blockDim.x) {
            float all = 0;
            for (int v = 0; v < WARPS; ++v) all += sums[v][i / WIDTH][i % WIDTH];
            to.write(blockIdx.y, i / WIDTH, first() + i % WIDTH, all);
        }
    }
};

// A tile of 16 * ROWS by 128 outputs, 64 of K at a time in a ring of STAGES; four warps with 32 columns each.  FINE: groups
// of less than 64, whose scales change within a stage.
template <int ROWS, bool ZEROS, bool FINE> struct Tile {
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

    struct Parameters { __half2 scale[4], zero[4]; };
    static QW_INLINE void load_parameters(Parameters& p, const Weights& w, int k) {
        const long long at = (long long)(k / w.group) * w.rows + blockIdx.x * N + threadIdx.x / 32 * 32 + threadIdx.x % 32 / 4;
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            p.scale[j] = twice(w.scales + at + 8 * j);
            if (ZEROS) p.zero[j] = twice(w.zeros + at + 8 * j);
        }
    }

    static QW_INLINE void multiply(float (&sum)[ROWS][4][4], const unsigned char* shared, const Weights& w, int k) {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        const uint32_t* words = reinterpret_cast<const uint32_t*>(shared + A_BYTES) + warp * 64 + lane * 2;
        Parameters p;
#pragma unroll
        for (int s = 0; s < K / 16; ++s) {
            if (FINE || s == 0) load_parameters(p, w, k + 16 * s);
            Registers4 a[ROWS];
#pragma unroll
            for (int i = 0; i < ROWS; ++i) load_matrices(a[i], shared + chunk(16 * i + lane % 16, 2 * s + lane / 16));
            const Pack<uint32_t, 2> two = two_words(words + s * 256);
#pragma unroll
            for (int j = 0; j < 4; j += 2) {
                Registers4 b;
                unpack(two.at[j / 2], b);
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    Registers2 half;
#pragma unroll
                    for (int i = 0; i < 2; ++i) {
                        __half2 value = as_half2(b[2 * h + i]);
                        if (ZEROS) value = __hsub2(value, p.zero[j + h]);
                        half[i] = as_word(__hmul2(value, p.scale[j + h]));
                    }
#pragma unroll
                    for (int i = 0; i < ROWS; ++i) multiply_f16(sum[i][j + h], a[i], half);
                }
            }
        }
    }

    static QW_INLINE void write(const float (&sum)[ROWS][4][4], const Result& to) {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int row = blockIdx.y * M + 16 * i + lane / 4 + 8 * h;
                if (row >= to.m) continue;
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    const int column = blockIdx.x * N + warp * 32 + lane % 4 * 2 + 8 * (j / 2) + j % 2;
                    to.write(blockIdx.z, row, column, sum[i][j / 2][2 * h + j % 2]);
                }
            }
    }

    // Block (n / 128, m / M, split) sums k_per_split of K.
    static QW_INLINE void run(unsigned char* shared, const __half* x, const Weights& w, const Result& to, int k_per_split) {
        const int first = blockIdx.z * k_per_split, steps = (min(w.columns, first + k_per_split) - first) / K;
        float sum[ROWS][4][4] = {};
#pragma unroll
        for (int t = 0; t < STAGES - 1; ++t) {
            if (t < steps) fetch(shared + t * (A_BYTES + B_BYTES), x, w, to.m, first + t * K);
            commit_copies();
        }
        for (int t = 0; t < steps; ++t) {
            wait_copies<STAGES - 2>();
            __syncthreads();
            const int next = t + STAGES - 1;
            if (next < steps) fetch(shared + next % STAGES * (A_BYTES + B_BYTES), x, w, to.m, first + next * K);
            commit_copies();
            multiply(sum, shared + t % STAGES * (A_BYTES + B_BYTES), w, first + t * K);
        }
        write(sum, to);
    }
};

// The weights as halves [wanted, K], for a product of another library.  A warp takes 32 rows and 64 of K through shared memory.
template <bool ZEROS> QW_INLINE void dequantize(const Weights& w, __half* out, int wanted) {
    constexpr int WARPS = 4, STRIDE = 72;  // 64 halves and 16 bytes, so that rows start in other banks
    __shared__ __align__(16) __half tiles[WARPS][32 * STRIDE];
    const int lane = threadIdx.x % 32, n0 = blockIdx.x * 32, k0 = (blockIdx.y * WARPS + threadIdx.x / 32) * 64;
    __half* tile = tiles[threadIdx.x / 32];
    if (k0 >= w.columns) return;
#pragma unroll
    for (int s = 0; s < 4; ++s) {
        const long long group = (long long)((k0 + 16 * s) / w.group) * w.rows + n0 + lane / 4;
        const Pack<uint32_t, 2> two = two_words(w.words + ((long long)(k0 / 16 + s) * (w.rows / 32) + blockIdx.x) * 64 + 2 * lane);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            Registers4 b;
            unpack(two.at[h], b);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int row = 16 * h + 8 * (i / 2);
                __half2 value = as_half2(b[i]);
                if (ZEROS) value = __hsub2(value, twice(w.zeros + group + row));
                value = __hmul2(value, twice(w.scales + group + row));
                *reinterpret_cast<__half2*>(tile + (row + lane / 4) * STRIDE + 16 * s + 8 * (i % 2) + lane % 4 * 2) = value;
            }
        }
    }
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int row = 4 * i + lane / 8, at = lane % 8 * 8;
        if (n0 + row < wanted)
            store(out + (long long)(n0 + row) * w.columns + k0 + at, load<__half, 8>(tile + row * STRIDE + at));
    }
}

}  // namespace qw

#define W4A16_ARGUMENTS                                                                                                  \
    const __half *x, const uint32_t *words, const __half *scales, const __half *zeros, const __half *bias, __half *out,  \
        float *part, int m, int wanted, int rows, int columns, int group, int per_split
#define W4A16_FEW(NAME, WARPS, ZEROS)                                                                                    \
    QW_KERNEL(WARPS * 32) w4a16_few##NAME(W4A16_ARGUMENTS) {                                                             \
        qw::FewRows<ZEROS, WARPS>(x, {words, scales, zeros, rows, columns, group}, m)                                    \
            .run({part, out, bias, m, rows, wanted}, per_split);                                                         \
    }
#define W4A16_TILE(NAME, ROWS, ZEROS, FINE)                                                                              \
    QW_KERNEL(128) w4a16_tile##NAME(W4A16_ARGUMENTS) {                                                                   \
        QW_DYNAMIC_SHARED(shared);                                                                                       \
        qw::Tile<ROWS, ZEROS, FINE>::run(shared, x, {words, scales, zeros, rows, columns, group},                        \
                                         {part, out, bias, m, rows, wanted}, per_split);                                 \
    }
#define W4A16_TILES(SIDE, ROWS)                     \
    W4A16_TILE(SIDE, ROWS, false, false)            \
    W4A16_TILE(SIDE##_zeros, ROWS, true, false)     \
    W4A16_TILE(SIDE##_fine, ROWS, false, true)      \
    W4A16_TILE(SIDE##_fine_zeros, ROWS, true, true)
W4A16_FEW(8, 8, false)
W4A16_FEW(8_zeros, 8, true)
W4A16_FEW(16, 16, false)
W4A16_FEW(16_zeros, 16, true)
W4A16_TILES(16, 1)
W4A16_TILES(32, 2)
W4A16_TILES(64, 4)
#define W4A16_DEQUANTIZE(NAME, ZEROS)                                                                                   \
    QW_KERNEL(128) w4a16_dequantize##NAME(const uint32_t* words, const __half* scales, const __half* zeros, __half* out, \
                                          int wanted, int rows, int columns, int group) {                               \
        qw::dequantize<ZEROS>({words, scales, zeros, rows, columns, group}, out, wanted);                               \
    }
W4A16_DEQUANTIZE(, false)
W4A16_DEQUANTIZE(_zeros, true)

// Adds the parts of a split K, and the bias if there is one.
QW_KERNEL(256) w4a16_sum(const float* part, const __half* bias, __half* out, int splits, int m, int wanted, int rows) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= (long long)m * wanted) return;
    const long long row = i / wanted, column = i % wanted;
    float all = bias ? __half2float(bias[column]) : 0.f;
    for (int s = 0; s < splits; ++s) all += part[(s * m + row) * rows + column];
    out[i] = __float2half_rn(all);
}
