/* SPDX-License-Identifier: BSD-3-Clause */
/* Two blocks write to the next PE, each on a context of its own: none waits for what the other one posted. Over the
 * NIC GDR_CTX_QUEUES=2 keeps the queues for them; without, the blocks share the default context. */
#include <gdr.h>
#include <stdio.h>

struct args { int *to, *from; gdr_ctx_t ctx[2]; };

GDR_KERNEL(halves, struct args, a)
{
	int next = (gdr_my_pe() + 1) % gdr_n_pes(), first = (int)gdr_block_id() * 64;
	gdr_ctx_t ctx = a.ctx[gdr_block_id()];

	gdr_ctx_int_put_nbi_block(ctx, a.to + first, a.from + first, 64, next);
	if (gdr_thread_id() == 0)
		gdr_ctx_quiet(ctx);
}

int main(void)
{
	int n, me, i, half[64], wrong = 0;
	struct args a;

	if (gdr_init())
		return 1;
	me = gdr_host_my_pe();
	n = gdr_host_n_pes();
	a.to = (int *)gdr_calloc(128, sizeof(int));
	a.from = (int *)gdr_calloc(128, sizeof(int));
	for (i = 0; i < 64; i++)
		half[i] = me * 64 + i;
	gdr_memcpy(a.from, half, sizeof(half));
	gdr_memcpy(a.from + 64, half, sizeof(half));
	for (i = 0; i < 2; i++)
		if (gdr_ctx_create(GDR_CTX_BLOCK, &a.ctx[i]))
			a.ctx[i] = GDR_CTX_DEFAULT;
	gdr_launch(halves, 2, 32, 0, NULL, &a);
	gdr_stream_sync(NULL);
	gdr_barrier_all();
	gdr_memcpy(half, a.to + 64, sizeof(half));
	for (i = 0; i < 64; i++)
		wrong |= half[i] != (me + n - 1) % n * 64 + i;
	for (i = 0; i < 2; i++)
		if (a.ctx[i] != GDR_CTX_DEFAULT)
			gdr_ctx_destroy(a.ctx[i]);
	printf("PE %d: %s\n", me, wrong ? "wrong" : "right");
	return gdr_finalize() || wrong;
}
