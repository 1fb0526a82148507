/* SPDX-License-Identifier: BSD-3-Clause */
/* Fibers: contexts that switch without a system call, their stacks, and what
 * sanitizers and valgrind want to know about both. No scheduling here. */
#ifndef GDRI_HOSTDEV_FIBER_H
#define GDRI_HOSTDEV_FIBER_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define GDRI_HD_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GDRI_HD_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define GDRI_HD_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GDRI_HD_TSAN 1
#endif
#endif

/* The scheduler's own state is used by all fibers of a block, one at a time. To
 * ThreadSanitizer each fiber is a thread and a switch orders nothing (else it
 * could not see races between threads of a kernel), so it must not watch. */
#if defined(__clang__) && defined(GDRI_HD_TSAN)
#define GDRI_HD_SCHED __attribute__((disable_sanitizer_instrumentation, noinline))
#else
#define GDRI_HD_SCHED __attribute__((no_sanitize_thread))
#endif

#ifdef GDRI_HD_TSAN
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
#define gdri_hd_acquire(addr) __tsan_acquire(addr)
#define gdri_hd_release(addr) __tsan_release(addr)
#else
#define gdri_hd_acquire(addr) ((void)(addr))
#define gdri_hd_release(addr) ((void)(addr))
#endif

/* Sanitizers make frames several times larger. */
#if defined(GDRI_HD_ASAN) || defined(GDRI_HD_TSAN)
#define GDRI_HD_STACK_FACTOR 4u
#else
#define GDRI_HD_STACK_FACTOR 1u
#endif

#if defined(GDRI_HD_UCONTEXT) || !(defined(__x86_64__) || defined(__aarch64__))
#undef GDRI_HD_UCONTEXT
#define GDRI_HD_UCONTEXT 1
#include <ucontext.h>
#endif

/* What a C++ runtime keeps of a thread, as the Itanium C++ ABI has it: the exceptions whose handlers have not ended,
 * and how many are thrown and not caught yet. */
struct gdri_hd_exceptions {
	void *caught;
	unsigned uncaught;
};

struct gdri_hd_ctx {
#ifdef GDRI_HD_UCONTEXT
	ucontext_t uc;
#else
	void *sp; /* valid while switched out */
#endif
	struct gdri_hd_exceptions *exceptions; /* of the CPU thread; NULL: no C++ runtime */
	struct gdri_hd_exceptions own;	       /* valid while switched out, where there is one */
	void *stack; /* lowest usable byte; NULL: a CPU thread's own stack */
	size_t stack_size;
#ifdef GDRI_HD_ASAN
	void *fake_stack;
#endif
#ifdef GDRI_HD_TSAN
	void *tsan;
#endif
};

/* The calling CPU thread as a context that fibers can switch back to. */
void gdri_hd_ctx_init_thread(struct gdri_hd_ctx *ctx);
/* Makes ctx start entry() on its stack at the next switch to it, on the CPU thread of `main`. entry must not return and
 * must call gdri_hd_ctx_arrive(main) first. `abandoned`: the context was left for good in the middle of something. */
void gdri_hd_ctx_make(struct gdri_hd_ctx *ctx, const struct gdri_hd_ctx *main, void (*entry)(void), int abandoned);
void gdri_hd_ctx_free(struct gdri_hd_ctx *ctx);
/* For ThreadSanitizer: what an abandoned fiber did happened before what the caller, the
 * context `main`, does next. */
void gdri_hd_ctx_settle(struct gdri_hd_ctx *main, struct gdri_hd_ctx *ctx);

/* Returns when somebody switches back to `from`. */
void gdri_hd_ctx_switch(struct gdri_hd_ctx *from, struct gdri_hd_ctx *to);
/* Leaves a fiber whose entry is done: `from` must be made anew. */
_Noreturn void gdri_hd_ctx_exit(struct gdri_hd_ctx *from, struct gdri_hd_ctx *to);
/* First thing on a new fiber; `main` is the CPU thread's context. */
void gdri_hd_ctx_arrive(struct gdri_hd_ctx *main);

/* hostdev_cxx.c. Looks, without a lock of the host device, whether the process has a C++ runtime by now; and where it
 * keeps the exceptions of the calling CPU thread, NULL: nowhere. */
void gdri_hd_cxx_look(void);
struct gdri_hd_exceptions *gdri_hd_cxx_exceptions(void);

/* Stacks of one worker, in one mapping: each with a guard page below. */
struct gdri_hd_stacks {
	char *base;
	size_t map_size, stride, stack_size;
	unsigned count;
	unsigned *valgrind_ids;
};
int gdri_hd_stacks_alloc(struct gdri_hd_stacks *s, unsigned count, size_t stack_size);
void gdri_hd_stacks_free(struct gdri_hd_stacks *s); /* accepts zeroed ones */
void gdri_hd_stacks_assign(const struct gdri_hd_stacks *s, unsigned i, struct gdri_hd_ctx *ctx);

/* hostdev_overflow.c: the calling thread runs fibers on these stacks from now on, and says so, on the stack `room`,
 * when one overflows; and not any more. */
#define GDRI_HD_OVERFLOW_ROOM 32768 /* for the program's handlers, too */
void gdri_hd_overflow_arm(const struct gdri_hd_stacks *stacks, void *room);
void gdri_hd_overflow_disarm(void);

#endif
