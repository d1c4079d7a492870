// Runs a grid: blocks one after another, one fiber for each thread, in one of four lane orders.
//
//   forward, reverse, random: one turn for every thread, in that order;
//   greedy: one warp as far as it gets before the next: shows what is overwritten while another warp still reads it.
//
// Barriers and warp collectives are meeting points.  Shared memory starts as 0xFF (NaN) in every block.  What is wrong in
// a kernel (a barrier that some threads miss, a lane missing from a collective, a misaligned address) ends the launch
// with a message that names block and thread.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "fibers.h"

namespace shim {

enum class State { ready, barrier, collective, done };
enum class Order { forward, reverse, random, greedy };
enum class Kind { none, sync, shuffle, vote, multiply, matrices };

constexpr int DEPOSIT_BYTES = 64;
typedef unsigned char Deposits[32][DEPOSIT_BYTES];

// Lanes of a warp that meet; two buffers, as a quick lane may be at the next meeting while a slow one still reads.
struct Meeting {
    uint32_t mask = 0, arrived = 0;
    Kind kind = Kind::none;
    unsigned generation = 0;
    alignas(16) Deposits deposits[2];
};

struct Copy {
    void* to;
    const void* from;
    bool valid;
    int group;
};

struct Fiber {
    Stack stack;
    uint3 thread{};
    int flat = 0, lane = 0, warp = 0;
    State state = State::ready;
    Meeting* waits_for = nullptr;
    unsigned generation = 0;
    std::vector<Copy> copies;
    int groups = 0;
};

#ifdef SHIM_THREADS
#define SHIM_EACH thread_local
#else
#define SHIM_EACH
#endif

inline dim3 grid_size, block_size;
inline uint3 block_index;
inline SHIM_EACH Fiber* current;
inline std::vector<std::unique_ptr<Fiber>> fibers;
inline std::vector<std::vector<std::unique_ptr<Meeting>>> meetings;   // of each warp
inline std::unique_ptr<unsigned char, decltype(&free)> dynamic_shared{nullptr, free};
inline size_t shared_bytes;
inline std::function<void()> kernel;
inline std::string failure;

inline std::string where(const Fiber* fiber) {
    char text[96];
    snprintf(text, sizeof text, "block (%u, %u, %u), thread %d: ", block_index.x, block_index.y, block_index.z,
             fiber ? fiber->flat : -1);
    return text;
}

[[noreturn]] inline void fail(const char* what) { throw std::runtime_error(where(current) + what); }

// A misaligned access is an error on a GPU, and silently works here unless it is looked for.
inline void need_alignment(const void* address, size_t bytes, const char* what) {
    if ((uintptr_t)address % bytes) fail(what);
}

class Random {
    uint64_t state;

  public:
    explicit Random(uint64_t seed) : state(seed * 2 + 1) {}
    size_t below(size_t bound) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return (state >> 33) % bound;
    }
    void shuffle(std::vector<int>& items) {
        for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
    }
};

#ifndef SHIM_THREADS
inline void run_fiber() {
    arrived();
    try {
        kernel();
    } catch (const std::exception& error) {
        failure = error.what();
    }
    current->state = State::done;
    leave(current->stack, true);
}

inline void wait_at_barrier() {
    current->state = State::barrier;
    leave(current->stack);
}

// The lanes of `mask` meet and see what each has brought.
inline Deposits& meet(uint32_t mask, Kind kind, const void* data, size_t bytes) {
    Fiber& me = *current;
    if (!(mask >> me.lane & 1)) fail("a lane is not in the mask that it gives");
    Meeting* meeting = nullptr;
    for (auto& known : meetings[me.warp])
        if (known->mask == mask) meeting = known.get();
    if (!meeting) {
        meetings[me.warp].push_back(std::make_unique<Meeting>());
        meeting = meetings[me.warp].back().get();
        meeting->mask = mask;
    }
    if (meeting->arrived && meeting->kind != kind) fail("lanes of a warp are in different collectives");
    Deposits& deposits = meeting->deposits[meeting->generation & 1];
    meeting->kind = kind;
    memcpy(deposits[me.lane], data, bytes);
    meeting->arrived |= 1u << me.lane;
    if (meeting->arrived == mask) {
        meeting->arrived = 0;
        ++meeting->generation;
    } else {
        me.generation = meeting->generation;
        me.waits_for = meeting;
        me.state = State::collective;
        leave(me.stack);
    }
    return deposits;
}

inline bool turn(Fiber& fiber) {
    if (fiber.state == State::collective && fiber.waits_for->generation != fiber.generation) fiber.state = State::ready;
    if (fiber.state != State::ready || !failure.empty()) return false;
    current = &fiber;
    enter(fiber.stack);
    return true;
}

// One round of turns; returns whether any thread could go on.
inline bool run_round(Order order, std::vector<int>& threads, std::vector<int>& warps, Random& random) {
    bool any = false;
    if (order != Order::greedy) {
        if (order == Order::random) random.shuffle(threads);
        for (int thread : threads) any |= turn(*fibers[thread]);
        return any;
    }
    random.shuffle(warps);
    for (int warp : warps) {
        for (bool moved = true; moved; any |= moved) {
            moved = false;
            for (size_t i = warp * 32; i < std::min(fibers.size(), size_t(warp + 1) * 32); ++i)
                moved |= turn(*fibers[i]);
        }
    }
    return any;
}

inline void run_block(Order order, Random& random) {
    if (shared_bytes) memset(dynamic_shared.get(), 0xFF, shared_bytes);
    for (auto& warp : meetings) warp.clear();
    for (auto& fiber : fibers) {
        fiber->state = State::ready;
        fiber->copies.clear();
        fiber->groups = 0;
        prepare(fiber->stack, run_fiber);
    }
    std::vector<int> threads(fibers.size()), warps(meetings.size());
    std::iota(threads.begin(), threads.end(), 0);
    std::iota(warps.begin(), warps.end(), 0);
    if (order == Order::reverse) std::reverse(threads.begin(), threads.end());
    while (failure.empty()) {
        bool moved = run_round(order, threads, warps, random);
        size_t done = 0, waiting = 0;
        for (auto& fiber : fibers) {
            done += fiber->state == State::done;
            waiting += fiber->state == State::barrier;
        }
        if (done == fibers.size()) return;
        if (done + waiting == fibers.size()) {
            if (done) failure = where(nullptr) + "some threads have ended, others wait at a barrier";
            for (auto& fiber : fibers)
                if (fiber->state == State::barrier) fiber->state = State::ready;
        } else if (!moved) {
            failure = where(nullptr) + "deadlock: a barrier that not all threads reach, or a lane missing from a collective";
        }
    }
}

#else
}  // namespace shim
#include "threads.h"
namespace shim {
#endif

inline void run_grid(dim3 grid, dim3 block, size_t shared, Order order, uint64_t seed) {
    grid_size = grid;
    block_size = block;
    failure.clear();
    size_t count = size_t(block.x) * block.y * block.z;
    if (count == 0 || count > 1024) throw std::runtime_error("a block has 1 to 1024 threads");
    void* memory = nullptr;
    if (shared && posix_memalign(&memory, 1024, shared)) throw std::bad_alloc();
    dynamic_shared.reset((unsigned char*)memory);
    shared_bytes = shared;
    fibers.clear();
    meetings.clear();
    meetings.resize((count + 31) / 32);
    for (size_t i = 0; i < count; ++i) {
        fibers.push_back(std::make_unique<Fiber>());
        Fiber& fiber = *fibers.back();
        fiber.flat = int(i), fiber.lane = int(i % 32), fiber.warp = int(i / 32);
        fiber.thread = {unsigned(i % block.x), unsigned(i / block.x % block.y), unsigned(i / block.x / block.y)};
    }
    Random random(seed);
    for (unsigned z = 0; z < grid.z; ++z)
        for (unsigned y = 0; y < grid.y; ++y)
            for (unsigned x = 0; x < grid.x && failure.empty(); ++x) {
                block_index = {x, y, z};
                run_block(order, random);
            }
}

}  // namespace shim
