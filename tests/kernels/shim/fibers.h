// Fibers: each has a stack of its own and runs until it gives way.  Assembly on x86-64, ucontext elsewhere; told to
// AddressSanitizer, which otherwise takes the change of stack for an overflow.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace shim {

#if defined(__SANITIZE_ADDRESS__)
constexpr size_t STACK_BYTES = 256 << 10;
#else
constexpr size_t STACK_BYTES = 64 << 10;
#endif

#if defined(__x86_64__)
// Saves the callee-saved registers on the current stack, keeps its top in *from, continues on the stack `to`.
extern "C" void shim_switch(void** from, void* to);
asm(".text\n.weak shim_switch\n.type shim_switch,@function\nshim_switch:\n"
    " push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
    " mov %rsp,(%rdi)\n mov %rsi,%rsp\n"
    " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n");
#endif

struct Stack {
    void* memory = nullptr;
    void* sanitizer = nullptr;
#if defined(__x86_64__)
    void* top = nullptr;
#else
    ucontext_t context;
#endif
    Stack() = default;
    Stack(const Stack&) = delete;
    Stack& operator=(const Stack&) = delete;
    ~Stack() { free(memory); }
};

inline Stack scheduler;                     // the thread that launches
inline const void* scheduler_bottom;
inline size_t scheduler_bytes;

inline void prepare(Stack& stack, void (*entry)()) {
    if (!stack.memory) stack.memory = aligned_alloc(16, STACK_BYTES);
#if defined(__x86_64__)
    void** top = (void**)((char*)stack.memory + STACK_BYTES);
    *--top = nullptr;
    *--top = (void*)entry;
    for (int i = 0; i < 6; ++i) *--top = nullptr;
    stack.top = top;
#else
    getcontext(&stack.context);
    stack.context.uc_stack.ss_sp = stack.memory;
    stack.context.uc_stack.ss_size = STACK_BYTES;
    stack.context.uc_link = nullptr;
    makecontext(&stack.context, entry, 0);
#endif
}

inline void jump(Stack& from, Stack& to) {
#if defined(__x86_64__)
    shim_switch(&from.top, to.top);
#else
    swapcontext(&from.context, &to.context);
#endif
}

inline void enter(Stack& fiber) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&scheduler.sanitizer, fiber.memory, STACK_BYTES);
#endif
    jump(scheduler, fiber);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(scheduler.sanitizer, nullptr, nullptr);
#endif
}

// The first thing a fiber does.
inline void arrived() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_bottom, &scheduler_bytes);
#endif
}

inline void leave(Stack& fiber, bool last = false) {
    (void)last;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(last ? nullptr : &fiber.sanitizer, scheduler_bottom, scheduler_bytes);
#endif
    jump(fiber, scheduler);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fiber.sanitizer, &scheduler_bottom, &scheduler_bytes);
#endif
}

}  // namespace shim
