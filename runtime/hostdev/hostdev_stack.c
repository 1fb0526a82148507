/* SPDX-License-Identifier: BSD-3-Clause */
/* Stacks of fibers. All stacks of a worker are one mapping: 64 blocks of 1024
 * threads with a mapping and a guard page each would pass the kernel's default
 * limit of 65530 mappings (vm.max_map_count). Guards are MADV_GUARD_INSTALL
 * (Linux 6.13: costs no mapping), else mprotect, else, where the limit is
 * reached, missing, with one warning. */
#define _GNU_SOURCE

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gdr/status.h>
#include "runtime/core/log.h"
#include "runtime/hostdev/hostdev_fiber.h"

#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#endif
#endif
#ifndef VALGRIND_STACK_REGISTER
#define VALGRIND_STACK_REGISTER(start, end) 0
#define VALGRIND_STACK_DEREGISTER(id) ((void)(id))
#define RUNNING_ON_VALGRIND 0
#endif

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* include/uapi/asm-generic/mman-common.h */
#endif

/* An array that a function does not fill from its top may reach beyond a guard: it is wide, and costs addresses alone.
 * Beyond it only code compiled with -fstack-clash-protection is caught. */
#define GUARD_SIZE 65536u

static void install_guards(const struct gdri_hd_stacks *s)
{
	static int warned; /* relaxed: at worst two warnings */
	/* valgrind does not know the advice, and takes the pages for usable */
	int use_madvise = !RUNNING_ON_VALGRIND;

	for (unsigned i = 0; i < s->count; i++) {
		char *guard = s->base + i * s->stride;

		if (use_madvise && madvise(guard, GUARD_SIZE, MADV_GUARD_INSTALL) == 0)
			continue;
		use_madvise = 0;
		if (mprotect(guard, GUARD_SIZE, PROT_NONE) == 0)
			continue;
		if (!__atomic_exchange_n(&warned, 1, __ATOMIC_RELAXED)) /* one warning; pairs with nothing */
			gdri_warn("host device: no guard pages below some stacks (%m): an overflow "
				  "goes unnoticed; raise vm.max_map_count");
		return;
	}
}

static void tell_valgrind(struct gdri_hd_stacks *s)
{
	if (!RUNNING_ON_VALGRIND)
		return;
	s->valgrind_ids = calloc(s->count, sizeof(*s->valgrind_ids));
	if (!s->valgrind_ids)
		return;
	for (unsigned i = 0; i < s->count; i++) {
		char *low = s->base + i * s->stride + GUARD_SIZE;

		s->valgrind_ids[i] = VALGRIND_STACK_REGISTER(low, low + s->stack_size - 1);
		(void)low;
	}
}

int gdri_hd_stacks_alloc(struct gdri_hd_stacks *s, unsigned count, size_t stack_size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	memset(s, 0, sizeof(*s));
	stack_size = (stack_size * GDRI_HD_STACK_FACTOR + page - 1) & ~(page - 1);
	s->count = count;
	s->stack_size = stack_size;
	s->stride = stack_size + GUARD_SIZE; /* a multiple of any page */
	s->map_size = s->stride * count;
	s->base = mmap(NULL, s->map_size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (s->base == MAP_FAILED) {
		gdri_error("host device: cannot map %zu bytes for the stacks of %u threads (%s); "
			   "lower GDR_HOST_DEVICE_STACK or the size of the block",
			   s->map_size, count, gdri_errno_text(errno));
		memset(s, 0, sizeof(*s));
		return -GDR_ENOMEM;
	}
	/* Huge pages would make every touched stack 2 MiB; a refusal changes nothing else. */
	(void)madvise(s->base, s->map_size, MADV_NOHUGEPAGE);
	install_guards(s);
	tell_valgrind(s);
	return GDR_OK;
}

void gdri_hd_stacks_free(struct gdri_hd_stacks *s)
{
	if (!s->base)
		return;
	for (unsigned i = 0; s->valgrind_ids && i < s->count; i++)
		VALGRIND_STACK_DEREGISTER(s->valgrind_ids[i]);
	free(s->valgrind_ids);
	munmap(s->base, s->map_size);
	memset(s, 0, sizeof(*s));
}

void gdri_hd_stacks_assign(const struct gdri_hd_stacks *s, unsigned i, struct gdri_hd_ctx *ctx)
{
	ctx->stack = s->base + i * s->stride + (s->stride - s->stack_size);
	ctx->stack_size = s->stack_size;
}
