/* SPDX-License-Identifier: BSD-3-Clause */
/* The header as programs use it, for every standard of C and C++ (standards). WRONG: what the compiler must
 * refuse. */
#ifndef WRONG
#define WRONG 0
#endif
/* Macros of a program, or of headers before gdr's. */
#include <iso646.h>
#define ADD 1
#define AND &&
#define COMBINE 1
#define MAX 100
#define MIN 0
#define N 100
#define OR ||
#define SUM 1
#define XOR ^
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define likely(x) (x)
#define unlikely(x) (x)
#include <gdr.h>
#include <gdr/host_ops.h>

struct args {
	uint64_t *word;
	int *status;
};

struct other {
	char fill[200];
	struct args a;
};

/* A kernel may be named as an operation. */
GDR_KERNEL(put_signal, struct args, a)
{
	*a.status = gdr_put(a.word, a.word, 8, 0);
	*a.status |= gdr_uint64_iput(a.word, a.word, 1, 1, 1, 0);
	*a.status |= gdr_uint64_sum_reduce(GDR_TEAM_WORLD, a.word, a.word, 1);
	*a.status |= gdr_uint64_xor_reduce(GDR_TEAM_WORLD, a.word, a.word, 1);
	*a.status |= *a.word and not gdr_uint64_atomic_fetch_and(a.word, 1, 0);
	*a.status |= gdr_signal_wait_until(a.word, GDR_CMP_EQ, gdr_uint64_atomic_fetch_add(a.word, 1, 0));
	*a.status |= gdr_barrier(GDR_TEAM_WORLD) | gdr_fence() | gdr_quiet() | gdr_status();
	*a.status |= gdr_barrier_all() | gdr_sync_all() | gdr_my_pe() | gdr_n_pes();
}

GDR_KERNEL(of_other, struct other, o)
{
	(void)o;
}

GDR_KERNEL(of_number, int, n)
{
	(void)n;
}

int main(void)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;
	struct args a = {0, 0}, three[3] = {{0, 0}, {0, 0}, {0, 0}};
	const struct args fixed = {0, 0};
	int one = 1, grid = 0, ret = gdr_init_attr(&attr);
	void *hidden = &a;
	const void *fixed_hidden = &a;
	struct other o;

	o.a = a;
	ret |= gdr_launch(put_signal, 1, 1, 0, NULL, &a) | gdr_launch(put_signal, 1, 1, 0, NULL, &fixed);
	ret |= gdr_launch(put_signal, 1, 1, 0, NULL, hidden) | gdr_launch(put_signal, 1, 1, 0, NULL, fixed_hidden);
	ret |= gdr_launch(put_signal, 1, 1, 0, NULL, three) | gdr_launch(put_signal, 1, 1, 0, NULL, three + 1);
	ret |= gdr_launch(of_other, 1, 1, 0, NULL, &o) | gdr_launch(of_number, 1, 1, 0, NULL, &one);
	ret |= gdr_collective_launch(put_signal, 1, 1, 0, NULL, &a);
	ret |= gdr_collective_launch(put_signal, 0, 1, 0, NULL, hidden);
	ret |= gdr_launch_3d(put_signal, gdr_make_dim3(1, 1, 1), gdr_make_dim3(1, 1, 1), 0, NULL, &fixed);
	ret |= gdr_collective_launch_3d(put_signal, gdr_make_dim3(1, 1, 1), gdr_make_dim3(1, 1, 1), 0, NULL, hidden);
	ret |= gdr_collective_launch_query_gridsize(put_signal, 1, 0, &grid) | gdr_stream_sync(NULL);
#if WRONG == 1
	ret |= gdr_launch(put_signal, 1, 1, 0, NULL, &one);
#elif WRONG == 2
	ret |= gdr_collective_launch(of_other, 1, 1, 0, NULL, &a);
#endif
	return ret | gdr_finalize();
}
