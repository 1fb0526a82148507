/* SPDX-License-Identifier: BSD-3-Clause */
/* Every PE puts its number into the memory of the next one, from device code.
 *
 *	mpirun -n 2 ./ring_put */
#include <gdr.h>
#include <stdio.h>

struct ring {
	int *from;
	uint64_t *arrived;
	int *status;
};

GDR_KERNEL(ring_put, struct ring, r)
{
	int me = gdr_my_pe(), n = gdr_n_pes();

	*r.status =
		gdr_put_signal(r.from, &me, sizeof(me), r.arrived, 1, GDR_SIGNAL_SET, (me + 1) % n);
	if (!*r.status)
		*r.status = gdr_signal_wait_until_from(r.arrived, GDR_CMP_EQ, 1, (me + n - 1) % n);
	if (!*r.status)
		*r.status = gdr_quiet(); /* what became of the put */
}

int main(int argc, char **argv)
{
	struct ring r;
	int from = -1, status, failed = 0;

	if (argc > 1) { /* also --help */
		printf("usage: %s: each PE puts its number into the memory of the next one\n", argv[0]);
		return 0;
	}
	status = gdr_init();
	if (status)
		return 1; /* the reason is on stderr */
	r.from = (int *)gdr_malloc(sizeof(int));
	r.arrived = (uint64_t *)gdr_calloc(1, sizeof(uint64_t));
	r.status = (int *)gdr_calloc(1, sizeof(int));
	if (!r.from || !r.arrived || !r.status)
		return 1;
	status = gdr_launch(ring_put, 1, 1, 0, NULL, &r);
	if (!status)
		status = gdr_stream_sync(NULL);
	if (!status)
		status = gdr_memcpy(&failed, r.status, sizeof(failed));
	if (!status)
		status = gdr_memcpy(&from, r.from, sizeof(from));
	status = status ? status : failed; /* of the kernel */
	printf("PE %d of %d: got %d (%s)\n", gdr_host_my_pe(), gdr_host_n_pes(), from,
	       gdr_strerror(status));
	return gdr_finalize() || status;
}
