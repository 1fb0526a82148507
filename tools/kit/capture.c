// SPDX-License-Identifier: BSD-3-Clause
/* Preloaded by tools/hardware_kit: writes to the file KIT_CAPTURE what libmlx5 asks of the kernel's driver, outside the
 * data path, a line each:
 *
 *	cmd general|create|modify|query ERRNO IN OUT	a command of DEVX, its mailboxes in hex
 *	umem ID ADDRESS BYTES				memory of queues
 *	uar ID, eqn N					a doorbell page, an event queue
 *	ring UMEM OFFSET HEX			64 bytes of a umem that were written, as it is given back
 *
 * Queues in memory that the CPU cannot read are left out. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#define CAPTURE_UMEMS	64
#define CAPTURE_LARGEST ((size_t)8 << 20) /* of a umem that is written out */

/* As the others of the call: the headers of some releases declare it without these. */
#pragma GCC visibility push(default)
int ioctl(int fd, unsigned long request, ...);
#pragma GCC visibility pop

static struct umem {
	uint32_t handle, id;
	uint64_t addr, len; /* len 0: free */
} umems[CAPTURE_UMEMS];

static FILE *capture_file(void)
{
	static FILE *file;
	const char *path = getenv("KIT_CAPTURE");

	if (!file && path && *path)
		file = fopen(path, "ae");
	return file;
}

static struct ib_uverbs_attr *capture_attr(struct ib_uverbs_ioctl_hdr *h, unsigned id)
{
	for (unsigned i = 0; i < h->num_attrs; i++)
		if (h->attrs[i].attr_id == id)
			return &h->attrs[i];
	return NULL;
}

/* What an attribute holds: up to 8 bytes stand in it. */
static const uint8_t *capture_bytes(const struct ib_uverbs_attr *a)
{
	return a->len > sizeof(a->data) ? (const uint8_t *)(uintptr_t)a->data
					: (const uint8_t *)&a->data;
}

static uint64_t capture_number(struct ib_uverbs_ioctl_hdr *h, unsigned id)
{
	struct ib_uverbs_attr *a = capture_attr(h, id);

	return a ? a->data : 0;
}

/* What the kernel wrote to where the attribute points, of 4 bytes. */
static uint32_t capture_answer(struct ib_uverbs_ioctl_hdr *h, unsigned id)
{
	struct ib_uverbs_attr *a = capture_attr(h, id);
	uint32_t n = 0;

	if (a && a->data)
		memcpy(&n, (const void *)(uintptr_t)a->data, sizeof(n));
	return n;
}

static void capture_hex(FILE *f, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%02x", p[i]);
}

static void capture_command(FILE *f, struct ib_uverbs_ioctl_hdr *h, const char *kind, unsigned in,
			    unsigned out, int err)
{
	struct ib_uverbs_attr *i = capture_attr(h, in), *o = capture_attr(h, out);

	if (!i || !o)
		return;
	fprintf(f, "cmd %s %d ", kind, err);
	capture_hex(f, capture_bytes(i), i->len);
	fputc(' ', f);
	capture_hex(f, (const uint8_t *)(uintptr_t)o->data, o->len);
	fputc('\n', f);
}

static void capture_register(FILE *f, struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_attr *handle = capture_attr(h, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE);
	struct umem u = {.handle = handle ? (uint32_t)handle->data : 0,
			 .id = capture_answer(h, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID),
			 .addr = capture_number(h, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR),
			 .len = capture_number(h, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN)};

	fprintf(f, "umem %u 0x%llx %llu\n", u.id, (unsigned long long)u.addr,
		(unsigned long long)u.len);
	for (int i = 0; i < CAPTURE_UMEMS; i++)
		if (!umems[i].len) {
			umems[i] = u;
			return;
		}
}

static void capture_ring(FILE *f, const struct umem *u)
{
	static const uint8_t zero[64];
	uint8_t *copy = u->len <= CAPTURE_LARGEST ? malloc(u->len) : NULL;
	struct iovec to = {copy, u->len}, from = {(void *)(uintptr_t)u->addr, u->len};

	if (copy && process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)u->len)
		for (size_t at = 0; at + 64 <= u->len; at += 64) {
			if (!memcmp(copy + at, zero, 64))
				continue;
			fprintf(f, "ring %u 0x%zx ", u->id, at);
			capture_hex(f, copy + at, 64);
			fputc('\n', f);
		}
	free(copy);
}

static void capture_before(FILE *f, struct ib_uverbs_ioctl_hdr *h)
{
	struct ib_uverbs_attr *a;

	if (h->object_id != MLX5_IB_OBJECT_DEVX_UMEM ||
	    h->method_id != MLX5_IB_METHOD_DEVX_UMEM_DEREG)
		return;
	a = capture_attr(h, MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE);
	for (int i = 0; a && i < CAPTURE_UMEMS; i++)
		if (umems[i].len && umems[i].handle == (uint32_t)a->data) {
			capture_ring(f, &umems[i]);
			umems[i].len = 0;
			return;
		}
}

static void capture_after(FILE *f, struct ib_uverbs_ioctl_hdr *h, int err)
{
	if (h->object_id == MLX5_IB_OBJECT_DEVX && h->method_id == MLX5_IB_METHOD_DEVX_OTHER)
		capture_command(f, h, "general", MLX5_IB_ATTR_DEVX_OTHER_CMD_IN,
				MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, err);
	else if (h->object_id == MLX5_IB_OBJECT_DEVX &&
		 h->method_id == MLX5_IB_METHOD_DEVX_QUERY_EQN && !err)
		fprintf(f, "eqn %u\n", capture_answer(h, MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN));
	else if (h->object_id == MLX5_IB_OBJECT_UAR &&
		 h->method_id == MLX5_IB_METHOD_UAR_OBJ_ALLOC && !err)
		fprintf(f, "uar %u\n", capture_answer(h, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID));
	else if (h->object_id == MLX5_IB_OBJECT_DEVX_UMEM &&
		 h->method_id == MLX5_IB_METHOD_DEVX_UMEM_REG && !err)
		capture_register(f, h);
	if (h->object_id != MLX5_IB_OBJECT_DEVX_OBJ)
		return;
	if (h->method_id == MLX5_IB_METHOD_DEVX_OBJ_CREATE)
		capture_command(f, h, "create", MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN,
				MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, err);
	else if (h->method_id == MLX5_IB_METHOD_DEVX_OBJ_MODIFY)
		capture_command(f, h, "modify", MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN,
				MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, err);
	else if (h->method_id == MLX5_IB_METHOD_DEVX_OBJ_QUERY)
		capture_command(f, h, "query", MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN,
				MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, err);
}

int ioctl(int fd, unsigned long request, ...)
{
	static int (*next)(int, unsigned long, ...);
	FILE *f = request == RDMA_VERBS_IOCTL ? capture_file() : NULL;
	int ret, err;
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "ioctl");
	if (!f)
		return next(fd, request, arg);
	capture_before(f, arg);
	ret = next(fd, request, arg);
	err = ret ? errno : 0;
	capture_after(f, arg, err);
	fflush(f);
	errno = err;
	return ret;
}
