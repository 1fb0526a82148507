// SPDX-License-Identifier: BSD-3-Clause
/* A PE with a GPU that reaches itself by queue: a fake driver above, softhca below. The test is the kernel: the
 * GPU's memory is the process's own, so device code of the host device may use the GPU's state. A dma-buf of such
 * memory there is not: by tests/multi/on_gpus and softhca/tests/cuda. With the argument "ofi" libfabric carries the
 * queues, and the heap lies in memory of the host but where a test says otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gdr.h>
#include <gdr/impl/arch/unit.h>

#include "runtime/cuda/cuda_api.h"
#include "tests/unit/fake_buffer.h"
#include "tests/unit/fake_cuda.h"

static struct gdri_dev *device;

static int show(const struct gdri_constants *c)
{
	device = c->dev;
	return 0;
}

static struct gdri_unit unit = {GDR_ABI_VERSION, show, NULL, 1, 0, 1};

int cuCtxSetCurrent(void *ctx); /* of the fake */

static const char *transport = "nic", *kind = "auto";

static int setup(void **state)
{
	(void)state;
	fake_cuda.page_result = 0;
	unit.queues = 1;
	setenv("GDR_TRANSPORTS", transport, 1);
	setenv("GDR_HEAP_SIZE", "4m", 1);
	setenv("GDR_TIMEOUT", "5s", 1);
	setenv("GDR_HEAP_KIND", kind, 1);
	setenv("GDR_QUEUE_MEM", "auto", 1);
	setenv("GDR_DOORBELL", "auto", 1);
	assert_int_equal(cuCtxSetCurrent(NULL), 0);
	gdri_unit_add(&unit);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	gdri_unit_remove(&unit);
	return 0;
}

static void nothing_left(void)
{
	assert_null(device);
	assert_int_equal(fake_cuda.retained, 0);
	assert_int_equal(fake_cuda.streams, 0);
	assert_int_equal(fake_cuda.memory, 0);
	assert_int_equal(fake_cuda.mapped, 0);
}

static void says(const char *text, const char *what)
{
	assert_non_null(text);
	if (!strstr(text, what))
		fail_msg("\"%s\" does not say \"%s\"", text, what);
}

/* Every kind of post, then the host's view of it. */
static void use(const char *heap, const char *queues, const char *bell)
{
	struct gdr_job_info info;
	uint64_t *p, v = 7, w = 0;
	char *bytes;

	fake_cuda.rdma_memory = 0;
	fake_cuda.flags = strncmp(heap, "GPU", 3) ? 0 : 8; /* one of the program's */
	assert_int_equal(gdr_init(), 0);
	assert_non_null(device);
	assert_int_equal(gdr_query(&info), 0);
	assert_int_equal(info.n_nic, 1);
	/* the heap, and the queues where they are the GPU's: cuMemAlloc's memory no NIC may reach on a GB200 */
	assert_int_equal(fake_cuda.rdma_memory,
			 !strncmp(heap, "GPU", 3) + !strncmp(queues, "GPU", 3));
	if (strncmp(heap, "GPU", 3) || !strcmp(transport, "ofi")) /* the driver's copies keep the order by themselves */
		assert_int_equal(fake_cuda.flags, strncmp(heap, "GPU", 3) ? 0 : 8);
	else
		assert_int_equal(fake_cuda.flags, 8 | GDRI_CU_CTX_SYNC_MEMOPS);
	says(info.heap_memory, heap);
	says(info.queue_memory, queues);
	says(info.doorbell, bell);
	p = gdr_calloc(64, sizeof(*p));
	bytes = gdr_malloc(3 << 20);
	assert_non_null(p);
	assert_non_null(bytes);

	gdri_dev_state = device; /* a kernel */
	assert_int_equal(gdr_uint64_p(p + 1, 5, 0), 0);
	assert_int_equal(gdr_quiet(), 0);
	assert_int_equal(gdr_uint64_atomic_fetch_add(p + 1, 3, 0), 5);
	assert_int_equal(gdr_uint64_g(p + 1, 0), 8);
	memset(bytes, 0x5a, 100000);
	assert_int_equal(gdr_put_nbi(bytes + 200000, bytes, 100000, 0), 0);
	assert_int_equal(gdr_uint64_atomic_add(p + 2, 9, 0), 0);
	gdri_dev_state = NULL; /* has ended, with operations under way */

	assert_int_equal(gdr_host_quiet(), 0);
	assert_int_equal(p[2], 9);
	assert_memory_equal(bytes, bytes + 200000, 100000);
	assert_int_equal(gdr_host_put(p + 3, &v, sizeof(v), 0), 0);
	assert_int_equal(gdr_host_get(&w, p + 3, sizeof(w), 0), 0);
	assert_int_equal(w, 7);
	assert_int_equal(gdr_host_get(bytes + 1500000, bytes + 1, 1300000, 0), 0); /* more than one bounce */
	assert_memory_equal(bytes + 1500000, bytes + 1, 1300000);
	assert_int_equal(gdr_host_put(bytes + 1, bytes + 1500000, 100000, 0), 0);
	assert_int_equal(fake_cuda.pageable, 0); /* such a copy would wait for kernels, without limit */
	assert_int_equal(gdr_barrier_all(), 0);
	assert_int_equal(gdr_finalize(), 0);
	nothing_left();
}

static void test_peermem(void **state)
{
	(void)state;
	use("GPU memory (nvidia-peermem)", "GPU memory (nvidia-peermem)", "by the threads that post");
}

static void test_all_in_host_memory(void **state)
{
	(void)state;
	setenv("GDR_HEAP_KIND", "host", 1);
	setenv("GDR_QUEUE_MEM", "host", 1);
	use("host memory", "host memory", "by the threads that post");
}

/* The driver does not map the doorbell page: a host thread rings, and it is said how to do better. */
static void test_doorbell_refused(void **state)
{
	(void)state;
	fake_cuda.page_result = 800; /* not permitted */
	use("GPU memory", "GPU memory", "PeerMappingOverride=1");
	setenv("GDR_DOORBELL", "gpu", 1);
	assert_int_equal(gdr_init(), -GDR_ENOTSUP);
	nothing_left();
	setenv("GDR_DOORBELL", "cpu", 1);
	use("GPU memory", "GPU memory", "asked for");
}

/* A copy to the bounce buffer that was given up lands before the buffer's next use, and not in it. */
static void test_late_copy(void **state)
{
	uint64_t *p, v = 7, w = 0;

	(void)state;
	setenv("GDR_TIMEOUT", "400ms", 1);
	assert_int_equal(gdr_init(), 0);
	p = gdr_calloc(64, sizeof(*p));
	assert_non_null(p);
	p[2] = 9;
	__atomic_store_n(&fake_cuda.hang_copy, 1, __ATOMIC_RELAXED);
	assert_int_equal(gdr_host_put(p, &v, sizeof(v), 0), 0); /* no copy: the queue reads memory of the host */
	assert_int_equal(gdr_host_get(&w, p, sizeof(w), 0), 0);
	assert_int_equal(w, 7);
	assert_int_equal(gdr_host_put(p + 1, p + 2, sizeof(*p), 0), -GDR_ETIMEOUT);
	assert_int_equal(gdr_host_get(&w, p, sizeof(w), 0), -GDR_ETIMEOUT);
	__atomic_store_n(&fake_cuda.hang_copy, 0, __ATOMIC_RELAXED);
	w = 0;
	assert_int_equal(gdr_host_get(&w, p, sizeof(w), 0), 0);
	assert_int_equal(w, 7);
	assert_int_equal(p[1], 0);
	assert_int_equal(gdr_finalize(), -GDR_ETIMEOUT); /* the first failure */
	nothing_left();
}

/* Every quiet tells of a queue that failed; of the failure there is one record. */
static void test_one_record(void **state)
{
	uint64_t *p;
	uint32_t i;
	int ret;

	(void)state;
	assert_int_equal(gdr_init(), 0);
	p = gdr_calloc(64, sizeof(*p));
	assert_non_null(p);
	for (i = 0; i < device->n_slots; i++)
		device->qps[i].rkey_data.be ^= 0xff;
	gdri_dev_state = device; /* a kernel */
	assert_int_equal(gdr_put_nbi(p + 8, p, 64, 0), 0);
	gdri_dev_state = NULL;
	ret = gdr_host_quiet(); /* refused, or flushed: both ends are here */
	assert_true(ret < 0 && ret != -GDR_ETIMEOUT);
	assert_int_equal(gdr_errors(NULL, 0), 1);
	assert_int_equal(gdr_host_quiet(), ret);
	assert_int_equal(gdr_errors(NULL, 0), 1);
	assert_int_equal(gdr_finalize(), ret);
	nothing_left();
}

/* Read-only memory is a source; none at all is refused. */
static void test_any_memory(void **state)
{
	static const uint64_t constant[500] = {7, 8, [499] = 9};
	uint64_t *p, back[500] = {0};

	(void)state;
	assert_int_equal(gdr_init(), 0);
	p = gdr_calloc(500, sizeof(*p));
	assert_non_null(p);
	assert_int_equal(gdr_host_put(p, constant, sizeof(constant), 0), 0);
	assert_int_equal(gdr_host_get(back, p, sizeof(back), 0), 0);
	assert_memory_equal(back, constant, sizeof(back));
	assert_int_equal(gdr_buffer_register((void *)(uintptr_t)constant, sizeof(constant)), 0);
	assert_int_equal(gdr_buffer_unregister((void *)(uintptr_t)constant), 0);
	assert_int_equal(gdr_host_put(p, NULL, 4, 0), -GDR_EINVAL);
	assert_int_equal(gdr_host_get(NULL, p, 4000, 0), -GDR_EINVAL);
	assert_int_equal(gdr_put_on_stream(p, NULL, 4, 0, NULL), -GDR_EINVAL);
	assert_int_equal(gdr_host_put(p, constant, 8, 1), -GDR_EINVAL);
	assert_int_equal(gdr_finalize(), 0);
	nothing_left();
}

/* What host threads ask for in a CUDA program: a value that does not come is 0, and latched. */
static void test_host_values(void **state)
{
	uint64_t *p, v = 7;

	(void)state;
	assert_int_equal(gdr_init(), 0);
	p = gdr_calloc(64, sizeof(*p));
	assert_non_null(p);
	assert_int_equal(gdr_host_put(p, &v, sizeof(v), 0), 0);
	v = 1;
	gdri_value_get(&v, p, sizeof(v), 0);
	assert_int_equal(v, 7);
	assert_int_equal(gdr_host_status(), 0);
	gdri_value_get(&v, p, sizeof(v), 9); /* no such PE */
	assert_int_equal(v, 0);
	assert_int_equal(gdr_host_status(), -GDR_EINVAL);
	assert_int_equal(gdri_submit_wait_from(p, GDR_CMP_EQ, 7, 9, GDRI_NOW), -GDR_EINVAL);
	assert_int_equal(gdri_submit_wait_from(p, GDR_CMP_EQ, 7, -1, GDRI_NOW), -GDR_EINVAL);
	assert_int_equal(gdr_host_quiet(), -GDR_EINVAL); /* the latched one */
	assert_int_equal(gdr_finalize(), 0);
	nothing_left();
}

/* Memory of the program that is reached by queue, at its place behind the heap; then it can be reached no more. */
static void test_memory_of_the_program(void **state)
{
	uint8_t *own = fake_buffer(), *ptr, *again;
	uint64_t *p, v = 7, w = 0;

	(void)state;
	assert_non_null(own);
	assert_int_equal(gdr_init(), 0);
	p = gdr_calloc(64, sizeof(*p));
	ptr = gdr_symmetric_register(own, FAKE_BUFFER);
	assert_non_null(ptr);
	gdri_dev_state = device; /* a kernel */
	assert_int_equal(gdr_uint64_p((uint64_t *)(void *)(ptr + FAKE_BUFFER - 8), 5, 0), 0);
	memset(ptr, 0x5a, 100000);
	assert_int_equal(gdr_put_nbi(ptr + 200000, ptr, 100000, 0), 0);
	assert_int_equal(gdr_put_nbi(p, ptr, 64, 0), 0);
	assert_int_equal(gdr_quiet(), 0);
	assert_int_equal(gdr_uint64_atomic_fetch_add((uint64_t *)(void *)(ptr + FAKE_BUFFER - 8), 3, 0), 5);
	gdri_dev_state = NULL;
	assert_memory_equal(own + 200000, own, 100000);
	assert_memory_equal(p, own, 64);
	assert_int_equal(gdr_host_put(ptr + 8, &v, sizeof(v), 0), 0);
	assert_memory_equal(own + 8, &v, sizeof(v));
	assert_int_equal(gdr_host_get(&w, ptr + FAKE_BUFFER - 8, sizeof(w), 0), 0);
	assert_int_equal(w, 8);

	assert_int_equal(gdr_symmetric_unregister(ptr), 0);
	assert_int_equal(gdr_host_put(p + 1, &v, sizeof(v), 0), 0); /* the rest goes on */
	assert_int_equal(gdr_host_get(&w, p + 1, sizeof(w), 0), 0);
	assert_int_equal(w, 7);
	again = gdr_symmetric_register(own, FAKE_BUFFER);
	assert_ptr_equal(again, ptr);
	assert_int_equal(gdr_host_get(&w, ptr + 8, sizeof(w), 0), 0);
	assert_int_equal(w, 7);
	assert_int_equal(gdr_symmetric_unregister(ptr), 0);
	gdri_dev_state = device; /* where nothing is no key leads */
	assert_int_equal(gdr_uint64_p((uint64_t *)(void *)ptr, 5, 0), 0);
	assert_true(gdr_quiet() < 0);
	gdri_dev_state = NULL;
	assert_true(gdr_finalize() < 0);
	assert_false(fake_buffer_end(own));
	nothing_left();
}

/* A heap that has grown keeps two keys: data may overtake data. */
static void test_grown(void **state)
{
	uint64_t *p, w = 0;
	char *big;

	(void)state;
	setenv("GDR_HEAP_MAX", "64m", 1);
	assert_int_equal(gdr_init(), 0);
	p = gdr_calloc(8, sizeof(*p));
	big = gdr_malloc(9 << 20);
	assert_non_null(big);
	if (!strcmp(transport, "nic")) { /* of ofi they are the number of a list */
		assert_int_not_equal(device->qps[0].rkey_data.be, device->qps[0].rkey_sync.be);
		assert_int_equal(device->lkey.be, device->qps[0].rkey_sync.be);
	}
	gdri_dev_state = device; /* a kernel */
	memset(big, 0x5a, 100000);
	assert_int_equal(gdr_put_nbi(big + (8 << 20), big, 100000, 0), 0);
	assert_int_equal(gdr_fence(), 0);
	assert_int_equal(gdr_uint64_p(p, 3, 0), 0);
	assert_int_equal(gdr_quiet(), 0);
	gdri_dev_state = NULL;
	assert_memory_equal(big + (8 << 20), big, 100000);
	assert_int_equal(gdr_host_get(&w, p, sizeof(w), 0), 0);
	assert_int_equal(w, 3);
	assert_int_equal(gdr_finalize(), 0);
	unsetenv("GDR_HEAP_MAX");
	nothing_left();
}

static void test_program_without_queues(void **state)
{
	(void)state;
	unit.queues = 0;
	assert_int_equal(gdr_init(), -GDR_ENOTSUP);
	nothing_left();
}

/* Memory of a GPU is none of the host's heap: copying it there would end the program. */
static void test_gpu_memory_and_host_heap(void **state)
{
	uint8_t *own = fake_buffer();

	(void)state;
	assert_non_null(own);
	setenv("GDR_HEAP_KIND", "host", 1);
	assert_int_equal(gdr_init(), 0);
	assert_null(gdr_symmetric_register(own, FAKE_BUFFER));
	assert_int_equal(gdr_host_status(), -GDR_EINVAL);
	assert_int_equal(gdr_host_quiet(), 0);
	assert_int_equal(gdr_finalize(), 0);
	unsetenv("GDR_HEAP_KIND");
	assert_false(fake_buffer_end(own));
	nothing_left();
}

/* A module that the program loads by hand tells by itself whether its kernels can post. */
static void test_module_without_queues(void **state)
{
	static struct gdri_constants c;
	struct CUmod_st *module = (struct CUmod_st *)&c;

	(void)state;
	fake_cuda.variable = &c;
	fake_cuda.variable_size = sizeof(c);
	assert_int_equal(gdr_init(), 0);
	c.abi_version = GDR_ABI_VERSION | GDRI_MODULE_NO_QUEUES;
	assert_int_equal(gdr_module_init(module), -GDR_ENOTSUP);
	assert_null(c.dev);
	c.abi_version = GDR_ABI_VERSION;
	assert_int_equal(gdr_module_init(module), 0);
	assert_ptr_equal(c.dev, device);
	assert_int_equal(gdr_module_finalize(module), 0);
	assert_null(c.dev);
	assert_int_equal(gdr_finalize(), 0);

	setenv("GDR_TRANSPORTS", "p2p", 1);
	assert_int_equal(gdr_init(), 0);
	c.abi_version = GDR_ABI_VERSION | GDRI_MODULE_NO_QUEUES;
	assert_int_equal(gdr_module_init(module), 0);
	assert_int_equal(c.direct, 1);
	assert_int_equal(gdr_module_finalize(module), 0);
	assert_true(c.abi_version == (GDR_ABI_VERSION | GDRI_MODULE_NO_QUEUES));
	assert_int_equal(gdr_finalize(), 0);
	nothing_left();
}

/* Queues that a thread of the host carries: it reaches a heap in memory of the host. */
static void test_carried(void **state)
{
	(void)state;
	use("host memory", "host memory", "a thread looks at them");
}

static void test_carried_heap_of_gpu(void **state)
{
	(void)state;
	setenv("GDR_HEAP_KIND", "gpu", 1);
	use("GPU memory, to which the CPU copies", "host memory", "a thread looks at them");
}

static void test_carried_buffer_of_gpu(void **state)
{
	uint8_t *own = fake_buffer(), *p;

	(void)state;
	assert_non_null(own);
	assert_int_equal(gdr_init(), 0);
	p = gdr_calloc(1, 9000);
	assert_non_null(p);
	assert_int_equal(gdr_buffer_register(own, FAKE_BUFFER), 0);
	memset(own, 0x5a, 9000);
	gdri_dev_state = device; /* a kernel */
	assert_int_equal(gdr_put(p, own, 9000, 0), 0);
	assert_memory_equal(p, own, 9000);
	assert_int_equal(gdr_get(own + 10000, p, 9000, 0), 0);
	assert_memory_equal(own + 10000, p, 9000);
	gdri_dev_state = NULL;
	assert_int_equal(gdr_buffer_unregister(own), 0);
	assert_int_equal(gdr_finalize(), 0);
	assert_false(fake_buffer_end(own));
	nothing_left();
}

/* A GPU that does not copy ends what waits for its memory with an error that tells of it, within the limit. */
static void test_carried_hang(void **state)
{
	uint64_t *p, v = 7;

	(void)state;
	setenv("GDR_HEAP_KIND", "gpu", 1);
	setenv("GDR_TIMEOUT", "1s", 1);
	assert_int_equal(gdr_init(), 0);
	p = gdr_calloc(64, sizeof(*p));
	assert_non_null(p);
	__atomic_store_n(&fake_cuda.hang_copy, 1, __ATOMIC_RELAXED);
	assert_true(gdr_host_put(p, &v, sizeof(v), 0) < 0);
	assert_true(gdr_host_put(p + 1, &v, sizeof(v), 0) < 0);
	__atomic_store_n(&fake_cuda.hang_copy, 0, __ATOMIC_RELAXED);
	assert_true(gdr_finalize() < 0);
	nothing_left();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest carried[] = {
		cmocka_unit_test_setup_teardown(test_carried, setup, teardown),
		cmocka_unit_test_setup_teardown(test_carried_heap_of_gpu, setup, teardown),
		cmocka_unit_test_setup_teardown(test_carried_buffer_of_gpu, setup, teardown),
		cmocka_unit_test_setup_teardown(test_carried_hang, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_record, setup, teardown),
		cmocka_unit_test_setup_teardown(test_any_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_host_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_grown, setup, teardown),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_peermem, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all_in_host_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_doorbell_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_copy, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gpu_memory_and_host_heap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_one_record, setup, teardown),
		cmocka_unit_test_setup_teardown(test_any_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_host_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory_of_the_program, setup, teardown),
		cmocka_unit_test_setup_teardown(test_grown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_program_without_queues, setup, teardown),
		cmocka_unit_test_setup_teardown(test_module_without_queues, setup, teardown),
	};

	if (argc > 1 && !strcmp(argv[1], "ofi")) {
		transport = "ofi";
		kind = "host";
		return cmocka_run_group_tests(carried, NULL, NULL);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
