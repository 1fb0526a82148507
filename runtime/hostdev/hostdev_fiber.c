/* SPDX-License-Identifier: BSD-3-Clause */
/* The fiber switch. glibc's swapcontext makes a system call for the signal mask
 * at every switch; this one saves the callee-saved registers of the ABI, and
 * what a C++ runtime knows of exceptions, and nothing else (floating-point
 * control words, errno and signal masks are shared by the fibers of a block),
 * which takes a few nanoseconds. Own assembly and not
 * boost.context: 20 lines an architecture against a dependency of the library.
 * Other architectures use ucontext. */
#include "runtime/hostdev/hostdev_fiber.h"

#include <stdint.h>

#ifdef GDRI_HD_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifdef GDRI_HD_TSAN
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
#define GDRI_TSAN_NO_SYNC 1u
#endif

#ifndef GDRI_HD_UCONTEXT

/* Pushes the callee-saved registers, stores the stack pointer to *save, loads `sp`, pops. */
void gdri_hd_swap(void **save, void *sp);

#if defined(__x86_64__)
#define SAVED_REGS 6
__asm__(".text\n"
	".p2align 4\n"
	".globl gdri_hd_swap\n"
	".hidden gdri_hd_swap\n"
	".type gdri_hd_swap, @function\n"
	"gdri_hd_swap:\n"
	"	pushq %rbp\n"
	"	pushq %rbx\n"
	"	pushq %r12\n"
	"	pushq %r13\n"
	"	pushq %r14\n"
	"	pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq %rsi, %rsp\n"
	"	popq %r15\n"
	"	popq %r14\n"
	"	popq %r13\n"
	"	popq %r12\n"
	"	popq %rbx\n"
	"	popq %rbp\n"
	"	popq %rcx\n" /* not ret: the return predictor holds the other fiber's callers */
	"	jmpq *%rcx\n"
	".size gdri_hd_swap, .-gdri_hd_swap\n");

static void *first_frame(char *top, void (*entry)(void))
{
	uint64_t *sp = (uint64_t *)((uintptr_t)top & ~(uintptr_t)15);

	/* Where a return address would be: ends back-traces, and makes the stack pointer 8 modulo
	 * 16 at entry, as the ABI has it. */
	*--sp = 0;
	*--sp = (uint64_t)(uintptr_t)entry;
	for (int i = 0; i < SAVED_REGS; i++)
		*--sp = 0;
	return sp;
}
#else /* __aarch64__ */
#define FRAME 160
__asm__(".text\n"
	".p2align 4\n"
	".globl gdri_hd_swap\n"
	".hidden gdri_hd_swap\n"
	".type gdri_hd_swap, %function\n"
	"gdri_hd_swap:\n"
	"	sub sp, sp, #160\n"
	"	stp x19, x20, [sp, #0]\n"
	"	stp x21, x22, [sp, #16]\n"
	"	stp x23, x24, [sp, #32]\n"
	"	stp x25, x26, [sp, #48]\n"
	"	stp x27, x28, [sp, #64]\n"
	"	stp x29, x30, [sp, #80]\n"
	"	stp d8, d9, [sp, #96]\n"
	"	stp d10, d11, [sp, #112]\n"
	"	stp d12, d13, [sp, #128]\n"
	"	stp d14, d15, [sp, #144]\n"
	"	mov x9, sp\n"
	"	str x9, [x0]\n"
	"	mov sp, x1\n"
	"	ldp x19, x20, [sp, #0]\n"
	"	ldp x21, x22, [sp, #16]\n"
	"	ldp x23, x24, [sp, #32]\n"
	"	ldp x25, x26, [sp, #48]\n"
	"	ldp x27, x28, [sp, #64]\n"
	"	ldp x29, x30, [sp, #80]\n"
	"	ldp d8, d9, [sp, #96]\n"
	"	ldp d10, d11, [sp, #112]\n"
	"	ldp d12, d13, [sp, #128]\n"
	"	ldp d14, d15, [sp, #144]\n"
	"	add sp, sp, #160\n"
	"	ret x30\n"
	".size gdri_hd_swap, .-gdri_hd_swap\n");

static void *first_frame(char *top, void (*entry)(void))
{
	uint64_t *sp = (uint64_t *)(((uintptr_t)top & ~(uintptr_t)15) - FRAME);

	for (int i = 0; i < FRAME / 8; i++)
		sp[i] = 0;
	sp[11] = (uint64_t)(uintptr_t)entry; /* x30 */
	return sp;
}
#endif

#endif /* !GDRI_HD_UCONTEXT */

/* ------------------------------------------------- the view of sanitizers */

GDRI_HD_SCHED static void fiber_leave(struct gdri_hd_ctx *from, struct gdri_hd_ctx *to, int for_good)
{
#ifdef GDRI_HD_ASAN
	__sanitizer_start_switch_fiber(for_good ? NULL : &from->fake_stack, to->stack,
				       to->stack_size);
#endif
#ifdef GDRI_HD_TSAN
	__tsan_switch_to_fiber(to->tsan, GDRI_TSAN_NO_SYNC);
#endif
	(void)from;
	(void)to;
	(void)for_good;
}

GDRI_HD_SCHED static void fiber_resumed(struct gdri_hd_ctx *self)
{
#ifdef GDRI_HD_ASAN
	__sanitizer_finish_switch_fiber(self->fake_stack, NULL, NULL);
#endif
	(void)self;
}

GDRI_HD_SCHED void gdri_hd_ctx_arrive(struct gdri_hd_ctx *main)
{
#ifdef GDRI_HD_ASAN
	const void *bottom;
	size_t size;

	/* The first fiber of a CPU thread learns that thread's stack here; later ones come
	 * from other fibers. */
	__sanitizer_finish_switch_fiber(NULL, &bottom, &size);
	if (!main->stack) {
		main->stack = (void *)(uintptr_t)bottom;
		main->stack_size = size;
	}
#endif
	(void)main;
}

/* --------------------------------------------------------------- contexts */

GDRI_HD_SCHED void gdri_hd_ctx_init_thread(struct gdri_hd_ctx *ctx)
{
	ctx->exceptions = gdri_hd_cxx_exceptions();
	ctx->stack = NULL;
	ctx->stack_size = 0;
#ifdef GDRI_HD_TSAN
	ctx->tsan = __tsan_get_current_fiber();
#endif
}

GDRI_HD_SCHED void gdri_hd_ctx_make(struct gdri_hd_ctx *ctx, const struct gdri_hd_ctx *main, void (*entry)(void),
				    int abandoned)
{
	ctx->exceptions = main->exceptions;
	ctx->own = (struct gdri_hd_exceptions){0};
#ifdef GDRI_HD_ASAN
	if (abandoned)
		__asan_unpoison_memory_region(ctx->stack, ctx->stack_size);
	ctx->fake_stack = NULL;
#endif
#ifdef GDRI_HD_TSAN
	if (abandoned && ctx->tsan) { /* its shadow call stack is not empty */
		__tsan_destroy_fiber(ctx->tsan);
		ctx->tsan = NULL;
	}
	if (!ctx->tsan)
		ctx->tsan = __tsan_create_fiber(0);
#endif
	(void)abandoned;
#ifdef GDRI_HD_UCONTEXT
	getcontext(&ctx->uc);
	ctx->uc.uc_stack.ss_sp = ctx->stack;
	ctx->uc.uc_stack.ss_size = ctx->stack_size;
	ctx->uc.uc_link = NULL;
	makecontext(&ctx->uc, entry, 0);
#else
	ctx->sp = first_frame((char *)ctx->stack + ctx->stack_size, entry);
#endif
}

GDRI_HD_SCHED void gdri_hd_ctx_free(struct gdri_hd_ctx *ctx)
{
#ifdef GDRI_HD_TSAN
	if (ctx->tsan)
		__tsan_destroy_fiber(ctx->tsan);
	ctx->tsan = NULL;
#endif
	(void)ctx;
}

GDRI_HD_SCHED void gdri_hd_ctx_settle(struct gdri_hd_ctx *main, struct gdri_hd_ctx *ctx)
{
#ifdef GDRI_HD_TSAN
	__tsan_switch_to_fiber(ctx->tsan, GDRI_TSAN_NO_SYNC);
	gdri_hd_release(ctx);
	__tsan_switch_to_fiber(main->tsan, GDRI_TSAN_NO_SYNC);
	gdri_hd_acquire(ctx);
#endif
	(void)main;
	(void)ctx;
}

GDRI_HD_SCHED static void fiber_swap(struct gdri_hd_ctx *from, struct gdri_hd_ctx *to)
{
	struct gdri_hd_exceptions *e = from->exceptions;

	if (e) { /* else another fiber's handler would end this one's exception */
		from->own = *e;
		*e = to->own;
	}
#ifdef GDRI_HD_UCONTEXT
	swapcontext(&from->uc, &to->uc);
#else
	gdri_hd_swap(&from->sp, to->sp);
#endif
}

GDRI_HD_SCHED void gdri_hd_ctx_switch(struct gdri_hd_ctx *from, struct gdri_hd_ctx *to)
{
	fiber_leave(from, to, 0);
	fiber_swap(from, to);
	fiber_resumed(from);
}

GDRI_HD_SCHED _Noreturn void gdri_hd_ctx_exit(struct gdri_hd_ctx *from, struct gdri_hd_ctx *to)
{
	fiber_leave(from, to, 1);
	fiber_swap(from, to);
	__builtin_unreachable();
}
