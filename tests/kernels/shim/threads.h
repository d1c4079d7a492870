// The blocks of grid.h with one thread of the system for each CUDA thread, for ThreadSanitizer: it then sees every access to
// shared memory that no barrier orders.  Lanes that meet in a collective are ordered by it.  No deadlock is found, and no
// lane order chosen: that is for the fibers.
#pragma once
#include <condition_variable>
#include <mutex>
#include <thread>

namespace shim {

// Of a block: who waits at the barrier, who has ended; of each warp: its meetings.
struct Gate {
    std::mutex mutex;
    std::condition_variable opened;
};
inline Gate barrier;
inline size_t waiting, ended, generation;
inline std::vector<std::unique_ptr<Gate>> gates;

inline bool barrier_is_full() { return waiting && waiting + ended == fibers.size(); }

inline void open_barrier() {
    waiting = 0;
    ++generation;
    barrier.opened.notify_all();
}

inline void wait_at_barrier() {
    std::unique_lock<std::mutex> lock(barrier.mutex);
    const size_t mine = generation;
    ++waiting;
    if (barrier_is_full()) open_barrier();
    barrier.opened.wait(lock, [&] { return generation != mine; });
}

inline Deposits& meet(uint32_t mask, Kind kind, const void* data, size_t bytes) {
    Fiber& me = *current;
    if (!(mask >> me.lane & 1)) fail("a lane is not in the mask that it gives");
    Gate& gate = *gates[me.warp];
    std::unique_lock<std::mutex> lock(gate.mutex);
    Meeting* meeting = nullptr;
    for (auto& known : meetings[me.warp])
        if (known->mask == mask) meeting = known.get();
    if (!meeting) {
        meetings[me.warp].push_back(std::make_unique<Meeting>());
        meeting = meetings[me.warp].back().get();
        meeting->mask = mask;
    }
    if (meeting->arrived && meeting->kind != kind) fail("lanes of a warp are in different collectives");
    const unsigned mine = meeting->generation;
    Deposits& deposits = meeting->deposits[mine & 1];
    meeting->kind = kind;
    memcpy(deposits[me.lane], data, bytes);
    meeting->arrived |= 1u << me.lane;
    if (meeting->arrived == mask) {
        meeting->arrived = 0;
        ++meeting->generation;
        gate.opened.notify_all();
    } else {
        gate.opened.wait(lock, [&] { return meeting->generation != mine; });
    }
    return deposits;
}

inline void run_thread(Fiber* fiber) {
    current = fiber;
    try {
        kernel();
    } catch (const std::exception& error) {
        fprintf(stderr, "%s\n", error.what());
        abort();  // the others would wait for this thread for ever
    }
    std::unique_lock<std::mutex> lock(barrier.mutex);
    ++ended;
    if (barrier_is_full()) open_barrier();
}

inline void run_block(Order, Random&) {
    if (shared_bytes) memset(dynamic_shared.get(), 0xFF, shared_bytes);
    for (auto& warp : meetings) warp.clear();
    gates.clear();
    for (size_t i = 0; i < meetings.size(); ++i) gates.push_back(std::make_unique<Gate>());
    waiting = ended = 0;
    std::vector<std::thread> threads;
    for (auto& fiber : fibers) {
        fiber->copies.clear();
        fiber->groups = 0;
        threads.emplace_back(run_thread, fiber.get());
    }
    for (auto& thread : threads) thread.join();
}

}  // namespace shim
