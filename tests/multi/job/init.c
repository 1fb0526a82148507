/* SPDX-License-Identifier: BSD-3-Clause */
/* init and finalize again and again in one process, with other heap sizes and
 * paths; calls outside; what stays open does not grow. */
#include "tests/multi/multi.h"
#include "tests/entries.h"

#include <sys/mman.h>

/* A line on stderr names each call. */
static void named(void)
{
	static const char *const calls[] = {"gdr_barrier_all", "gdr_host_put", "gdr_host_get", "gdr_host_fence",
					    "gdr_host_quiet", "gdr_host_ctx_fence", "gdr_host_ctx_quiet"};
	int real = dup(2), texts = memfd_create("texts", 0);
	char said[4096] = "", byte = 0;

	CHECK(real >= 0 && texts >= 0 && dup2(texts, 2) == 2);
	CHECK_EQ(gdr_barrier_all(), -GDR_ESTATE);
	CHECK_EQ(gdr_host_put(&byte, &byte, 1, 0), -GDR_ESTATE);
	CHECK_EQ(gdr_host_get(&byte, &byte, 1, 0), -GDR_ESTATE);
	CHECK_EQ(gdr_host_fence(), -GDR_ESTATE);
	CHECK_EQ(gdr_host_quiet(), -GDR_ESTATE);
	CHECK_EQ(gdr_host_ctx_fence(GDR_CTX_DEFAULT), -GDR_ESTATE);
	CHECK_EQ(gdr_host_ctx_quiet(GDR_CTX_DEFAULT), -GDR_ESTATE);
	CHECK(dup2(real, 2) == 2 && pread(texts, said, sizeof(said) - 1, 0) >= 0);
	close(real);
	close(texts);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strstr(said, calls[i]))
			multi_fail(__FILE__, __LINE__, "nothing names %s: %s", calls[i], said);
}

static void outside(void)
{
	char byte = 0;

	CHECK_EQ(gdr_host_my_pe(), -GDR_ESTATE);
	CHECK_EQ(gdr_host_n_pes(), -GDR_ESTATE);
	CHECK(!gdr_malloc(8));
	named();
	CHECK_EQ(gdr_buffer_register(&byte, 1), -GDR_ESTATE);
	CHECK_OK(gdr_finalize());
}

/* Every way between two PEs is in use when files are counted, and none has gone. */
static int once(size_t heap_size, int round)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;
	struct gdr_heap_info info;
	int *word, v = round, next, files;

	attr.heap_size = heap_size;
	CHECK_OK(gdr_init_attr(&attr));
	multi_pe = gdr_host_my_pe();
	multi_n = gdr_host_n_pes();
	CHECK_OK(gdr_heap_query(&info));
	CHECK(info.size + heap_size / 8 + (1u << 20) >= heap_size); /* teams take at most an eighth */
	word = gdr_calloc(2, sizeof(int));
	CHECK(word);
	next = (multi_pe + 1) % multi_n;
	for (int pe = 0; pe < multi_n; pe++)
		CHECK_OK(gdr_host_put(word, &v, sizeof(v), pe));
	CHECK_OK(gdr_barrier_all());
	CHECK_EQ(*word, round);
	CHECK_OK(gdr_host_get(word + 1, word, sizeof(int), next));
	CHECK_EQ(word[1], round);
	files = entries("/proc/self/fd");
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_finalize());
	return files;
}

/* Sizes that GDR_HEAP_SIZE does not take either: too small for what the library keeps there, and too large. */
static void refused(void)
{
	const size_t sizes[] = {1, 300000, ((size_t)1 << 20) - 1, ((size_t)4 << 40) + 1, SIZE_MAX};
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		attr.heap_size = sizes[i];
		CHECK_EQ(gdr_init_attr(&attr), -GDR_EOPTION);
	}
	attr.heap_size = (size_t)1 << 20;
	CHECK_OK(gdr_init_attr(&attr));
	CHECK_OK(gdr_finalize());
}

int main(void)
{
	int files, first = 0;

	CHECK_EQ(gdr_version(),
		 GDR_VERSION_MAJOR * 10000 + GDR_VERSION_MINOR * 100 + GDR_VERSION_PATCH);
	CHECK(!strcmp(gdr_strerror(-GDR_ETIMEOUT), "time limit expired"));
	CHECK(!strcmp(gdr_strerror(GDR_ETIMEOUT), "time limit expired"));
	CHECK(gdr_strerror(12345) && strcmp(gdr_strerror(12345), gdr_strerror(GDR_ETIMEOUT)));
	outside();
	refused();
	for (int round = 1; round <= 5; round++) {
		files = once((size_t)(round & 1 ? 16 : 48) << 20, round);
		outside();
		if (round == 3) /* the first ones make what stays */
			first = files;
		else if (round > 3)
			CHECK_EQ(files, first);
	}
	if (multi_pe == 0)
		printf("init: all right on %d PEs\n", multi_n);
	return 0;
}
