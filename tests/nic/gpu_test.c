// SPDX-License-Identifier: BSD-3-Clause
/* How memory of a GPU is made known to the device: what is asked of the driver, of libibverbs and of libmlx5, which are
 * stood in for here, by where the NIC lies and what both know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/core/log.h"
#include "runtime/cuda/cuda_impl.h"
#include "runtime/nic/impl.h"

enum { NOT_SUPPORTED = 801 };

static struct {
	bool knows_pcie, bridge, direct, no_direct_mr, no_mr; /* what there is */
	unsigned long long asked[4];			      /* flags of cuMemGetHandleForAddressRange */
	size_t lens[4];
	gdri_cu_ptr begins[4];
	uint64_t offset; /* of the last region */
	long page;
	int n_asked, n_direct, n_plain, n_umem;
} model;

long sysconf(int name) /* the host's, for what is under test */
{
	return name == _SC_PAGESIZE ? model.page : -1;
}

static gdri_cu_result gpu_range(void *handle, gdri_cu_ptr p, size_t len, int type, unsigned long long flags)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_int_equal(type, GDRI_CU_RANGE_DMA_BUF);
	assert_true(model.n_asked < 4 && fd >= 0);
	model.lens[model.n_asked] = len;
	model.begins[model.n_asked] = p;
	model.asked[model.n_asked++] = flags;
	memcpy(handle, &fd, sizeof(fd));
	return flags && !model.knows_pcie ? NOT_SUPPORTED : 0;
}

static gdri_cu_result gpu_attribute(int *value, int what, gdri_cu_device d)
{
	(void)d;
	*value = what == GDRI_CU_ATTR_DMA_BUF || (what == GDRI_CU_ATTR_HOST_TABLES && model.bridge);
	return 0;
}

static gdri_cu_result gpu_push(gdri_cu_ctx ctx)
{
	(void)ctx;
	return 0;
}

static gdri_cu_result gpu_pop(gdri_cu_ctx *ctx)
{
	*ctx = NULL;
	return 0;
}

static struct ibv_mr region;

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd, int access)
{
	(void)pd;
	(void)len;
	(void)iova;
	(void)fd;
	(void)access;
	model.offset = offset;
	model.n_plain++;
	errno = EOPNOTSUPP;
	return model.no_mr ? NULL : &region;
}

struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd, int access,
				    int mlx5_access);
struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len, uint64_t iova, int fd, int access,
				    int mlx5_access)
{
	(void)pd;
	(void)offset;
	(void)len;
	(void)iova;
	(void)fd;
	(void)access;
	assert_int_equal(mlx5_access, 1);
	model.n_direct++;
	errno = EINVAL;
	return model.no_direct_mr ? NULL : &region;
}

int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *ctx, char *buf, size_t len);
int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *ctx, char *buf, size_t len)
{
	(void)ctx;
	strncpy(buf, "/sys/devices/pci0000:00/0000:00:01.0", len);
	return model.direct ? 0 : ENODEV;
}

struct mlx5dv_devx_umem *mlx5dv_devx_umem_reg_ex(struct ibv_context *ctx, struct mlx5dv_devx_umem_in *in)
{
	static struct mlx5dv_devx_umem umem;

	(void)ctx;
	assert_int_equal(in->size, 5000);
	model.n_umem++;
	return &umem;
}

static struct gdri_cuda gpu;
static struct gdri_nic nic;
static char page[65536] __attribute__((aligned(65536)));

static int setup(void **state)
{
	(void)state;
	memset(&model, 0, sizeof(model));
	memset(&nic, 0, sizeof(nic));
	model.knows_pcie = true;
	model.page = 4096;
	gpu.api.range_handle = gpu_range;
	gpu.api.device_attribute = gpu_attribute;
	gpu.api.ctx_push = gpu_push;
	gpu.api.ctx_pop = gpu_pop;
	gpu.api.error_string = NULL;
	nic.cuda = &gpu;
	gdri_options_read(&nic.opt, (char *[]){NULL});
	gdri_net_layout(&nic.opt, 2, &nic.layout);
	return 0;
}

static void expect_asked(int n, unsigned long long first, unsigned long long second)
{
	assert_int_equal(model.n_asked, n);
	assert_int_equal(model.asked[0], first);
	if (n > 1)
		assert_int_equal(model.asked[1], second);
}

static struct ibv_mr *register_one(void)
{
	int ret = 0;

	return gdri_nic_gpu_mr(&nic, "a test", page, 4096, 0, IBV_ACCESS_LOCAL_WRITE, &ret);
}

/* A NIC that reaches the GPU by the CPU wants the way by the CPU, which is the driver's own choice. */
static void test_far(void **state)
{
	(void)state;
	assert_ptr_equal(register_one(), &region);
	expect_asked(1, 0, 0);
	assert_false(gdri_nic_gpu_is_late(&nic));
	model.bridge = true; /* and then writes cross from PCIe to it */
	assert_true(gdri_nic_gpu_is_late(&nic));
}

static void test_beside(void **state)
{
	(void)state;
	nic.beside = model.bridge = true;
	assert_ptr_equal(register_one(), &region);
	expect_asked(1, GDRI_CU_RANGE_PCIE, 0);
	assert_int_equal(model.n_plain, 1);
	assert_false(gdri_nic_gpu_is_late(&nic));
}

/* Queues lie where data lies, and the driver gives whole pages alone. */
static void test_queues(void **state)
{
	char why[256];

	(void)state;
	nic.beside = true;
	assert_non_null(gdri_nic_gpu_umem(&nic, page, 5000, why, sizeof(why)));
	expect_asked(1, GDRI_CU_RANGE_PCIE, 0);
	assert_int_equal(model.lens[0], 8192);
	assert_int_equal(model.n_umem, 1);
}

/* Whole pages are the host's, and what is registered begins within one. */
static void test_large_pages(void **state)
{
	char why[256];
	int ret = 0;

	(void)state;
	model.page = 65536;
	assert_ptr_equal(gdri_nic_gpu_mr(&nic, "a test", page + 4096, 8192, 0, IBV_ACCESS_LOCAL_WRITE, &ret), &region);
	assert_int_equal(model.begins[0], (uintptr_t)page);
	assert_int_equal(model.lens[0], 65536);
	assert_int_equal(model.offset, 4096);
	assert_non_null(gdri_nic_gpu_umem(&nic, page, 5000, why, sizeof(why)));
	assert_int_equal(model.lens[1], 65536);
}

static void test_old_driver(void **state)
{
	(void)state;
	nic.beside = true;
	model.knows_pcie = false;
	assert_ptr_equal(register_one(), &region);
	expect_asked(2, GDRI_CU_RANGE_PCIE, 0);
}

/* Its function lies beside the GPU wherever the NIC is, and completions do not go by it. */
static void test_data_direct(void **state)
{
	(void)state;
	model.direct = true;
	assert_ptr_equal(register_one(), &region);
	expect_asked(1, GDRI_CU_RANGE_PCIE, 0);
	assert_int_equal(model.n_direct, 1);
	assert_int_equal(model.n_plain, 0);
	assert_true(gdri_nic_gpu_is_late(&nic));
}

static void test_data_direct_refused(void **state)
{
	(void)state;
	model.direct = model.no_direct_mr = true;
	assert_ptr_equal(register_one(), &region);
	expect_asked(2, GDRI_CU_RANGE_PCIE, 0);
	assert_int_equal(model.n_plain, 1);
	assert_false(gdri_nic_gpu_is_late(&nic));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_far, setup),
		cmocka_unit_test_setup(test_beside, setup),
		cmocka_unit_test_setup(test_queues, setup),
		cmocka_unit_test_setup(test_large_pages, setup),
		cmocka_unit_test_setup(test_old_driver, setup),
		cmocka_unit_test_setup(test_data_direct, setup),
		cmocka_unit_test_setup(test_data_direct_refused, setup),
	};

	gdri_log_set_level(GDRI_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
