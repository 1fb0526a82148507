/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls by NVSHMEM's names that fail, on PE 0; the argument says which: nobody (3 puts to a PE that there is not),
 * spin (one, and the kernel does not end), beyond (to where the peer has no memory), stream (a call of a host thread),
 * thread (a put of a host thread to a PE that there is not), status (what returns one). */
#include <nvshmem.h>

struct args {
	int *word;
	const char *how;
	int stop;
};

GDR_KERNEL(fail, struct args, a)
{
	volatile int *stop = &a.stop; /* the compiler may not take the loop away */
	int i;

	if (a.how[0] == 'n')
		for (i = 0; i < 3; i++)
			nvshmem_int_put(a.word, a.word, 1, 99);
	else if (a.how[0] == 'b')
		nvshmem_int_p(a.word + ((size_t)1 << 40), 1, 1);
	else
		nvshmem_int_p(a.word, 1, 99);
	nvshmem_quiet(); /* tells of `beyond` */
	while (a.how[0] == 's' && !*stop)
		nvshmem_fence();
}

int main(int argc, char **argv)
{
	struct args a = {0, argv[argc - 1], 0};
	gdr_stream_t stream;
	int status = 0;

	nvshmem_init();
	a.word = nvshmem_malloc(sizeof(int));
	if (!a.word || gdr_stream_create(&stream))
		return 3;
	nvshmem_barrier_all();
	if (nvshmem_my_pe()) {
		;
	} else if (!strcmp(a.how, "stream")) {
		nvshmemx_int_put_on_stream(a.word, a.word, 1, 99, stream);
	} else if (!strcmp(a.how, "status")) {
		status = nvshmem_int_sum_reduce(1000, a.word, a.word, 1) >= 0 ||
			 nvshmemx_barrier_on_stream(1000, stream) >= 0 || nvshmem_team_sync(1000) >= 0 ||
			 nvshmem_int_broadcast(NVSHMEM_TEAM_WORLD, a.word, a.word, 1, 99) >= 0;
		nvshmem_quiet(); /* has nothing to tell: each said it itself */
		status = status || gdr_host_status();
	} else if (!strcmp(a.how, "thread")) {
		nvshmem_int_p(a.word, 1, 99);
	} else if (gdr_launch(fail, 1, 1, 0, stream, &a) || gdr_stream_sync(stream)) {
		return 4;
	}
	gdr_stream_destroy(stream);
	printf("PE %d comes to its end\n", nvshmem_my_pe());
	nvshmem_finalize();
	return status;
}
