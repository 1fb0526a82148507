// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE /* aligned_alloc and dup2 under C11 */
#include "tools/check.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <gdr/host.h>

#include "runtime/cuda/cuda_impl.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/nic/address.h"
#include "runtime/nic/gid.h"
#include "runtime/nic/impl.h"
#include "runtime/core/options.h"

#define TRY ((size_t)2 << 20) /* bytes that are registered */

struct checks {
	struct gdri_options opt;
	struct gdri_cuda *cuda;
	struct gdri_nic *nic;
	int bad;
};

enum verdict { GOOD, NOTE, BAD, NONE };

/* name: what it is about; the rest in words, with the fix where there is one. NOTE: works, but could be better. */
__attribute__((format(printf, 4, 5))) static void say(struct checks *c, enum verdict v, const char *name,
						      const char *fmt, ...)
{
	static const char *const marks[] = {"ok", "note", "FAIL", "-"};
	va_list ap;

	printf("%-5s %-22s ", marks[v], name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	c->bad += v == BAD;
}

/* What the library says goes into our lines, not to stderr. */
static int hush(void)
{
	int old = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	fflush(stderr);
	if (null >= 0) {
		dup2(null, STDERR_FILENO);
		close(null);
	}
	gdri_log_clear_error();
	return old;
}

static void unhush(int old)
{
	if (old < 0)
		return;
	dup2(old, STDERR_FILENO);
	close(old);
}

static int file_has(const char *path, const char *text)
{
	char buf[4096];
	FILE *f = fopen(path, "r");
	size_t n;

	if (!f)
		return -1;
	n = fread(buf, 1, sizeof(buf) - 1, f);
	buf[n] = 0;
	fclose(f);
	return strstr(buf, text) != NULL;
}

/* ---- the host ---- */

static void check_memlock(struct checks *c)
{
	size_t need = (size_t)c->opt.heap_size + gdri_net_queue_bytes(&c->opt, 2);
	struct rlimit r;

	if (getrlimit(RLIMIT_MEMLOCK, &r) || r.rlim_cur == RLIM_INFINITY)
		say(c, GOOD, "locked memory", "no limit");
	else if (r.rlim_cur >= need)
		say(c, GOOD, "locked memory", "up to %llu KiB; heap and queues take %zu KiB",
		    (unsigned long long)r.rlim_cur >> 10, need >> 10);
	else
		say(c, geteuid() ? BAD : NOTE, "locked memory", "up to %llu KiB, heap and queues take %zu KiB%s; fix: "
		    "ulimit -l unlimited, LimitMEMLOCK=infinity for daemons such as slurmd",
		    (unsigned long long)r.rlim_cur >> 10, need >> 10,
		    geteuid() ? "" : " (root may go beyond)");
}

/* ---- the NIC ---- */

static void check_gid(struct checks *c)
{
	char gid[64];

	gdri_gid_text(c->nic->gid, gid, sizeof(gid));
	if (c->nic->link_layer == GDRI_LINK_IB)
		say(c, GOOD, "address", "InfiniBand, LID 0x%04x", c->nic->lid);
	else
		say(c, GOOD, "address", "RoCE v2, GID index %u (%s)", c->nic->gid_index, gid);
}

static void check_nic(struct checks *c)
{
	struct gdri_net_how how = {.opt = &c->opt, .cuda = c->cuda};
	struct gdri_net *net = NULL;
	char near[64];
	int old = hush(), ret;

	how.near = c->cuda ? gdri_cuda_sysfs(c->cuda, near, sizeof(near)) : NULL;
	ret = gdri_nic_open(&how, &net);
	c->nic = gdri_nic_of(net);
	unhush(old);
	if (ret) {
		say(c, BAD, "NIC", "%s", gdri_log_last_error());
		return;
	}
	say(c, GOOD, "NIC", "%s", c->nic->text);
	check_gid(c);
	/* without all of them it would not have been opened */
	say(c, GOOD, "atomics",
	    "operations 0x%x of 4 and 8 bytes (atomic_size_qp 0x%x), results of 8 bytes in host order",
	    c->nic->caps.operations, c->nic->caps.size_qp);
}

static void check_host_memory(struct checks *c)
{
	void *p = aligned_alloc(4096, TRY);
	struct gdri_mr_keys keys;
	int old = hush(), ret = p ? gdri_nic_register_heap(&c->nic->net, p, TRY, NULL, 0, &keys) : -GDR_ENOMEM;

	unhush(old);
	if (ret)
		say(c, BAD, "host memory", "%s", gdri_log_last_error());
	else
		say(c, GOOD, "host memory", "can be registered");
	gdri_nic_mr_destroy(c->nic);
	free(p);
}

/* Queues to one PE: also where they lie and who rings. */
static void check_queues(struct checks *c)
{
	size_t n = gdri_net_slots(&c->opt);
	struct gdri_qp *qps = aligned_alloc(GDRI_LINE, n * sizeof(*qps));
	int old = hush(), ret = -GDR_ENOMEM;

	if (qps) {
		memset(qps, 0, n * sizeof(*qps));
		ret = gdri_nic_create_queues(&c->nic->net, 1, qps);
	}
	unhush(old);
	if (ret) {
		say(c, BAD, "queues", "%s", gdri_log_last_error());
	} else {
		say(c, strncmp(c->nic->ring_text, "host", 4) || !c->cuda ? GOOD : NOTE, "queues",
		    "in %s", c->nic->ring_text);
		say(c, strstr(c->nic->bell_text, "host thread") ? NOTE : GOOD, "doorbells", "%s",
		    c->nic->bell_text);
	}
	if (!ret)
		say(c, c->nic->order ? NOTE : GOOD, "order", "%s", c->nic->order_text);
	free(qps);
}

/* ---- the GPU ---- */

static void check_gpu(struct checks *c)
{
	int old = hush(), ret = gdri_cuda_open(&c->cuda, 0, GDRI_HANDLE_AUTO);

	unhush(old);
	if (ret)
		say(c, NONE, "GPU", "none that can be used: %s; kernels run on the host device",
		    gdri_log_last_error());
	else
		say(c, GOOD, "GPU", "%s", gdri_cuda_text(c->cuda));
}

static void check_driver_key(struct checks *c)
{
	int has = file_has("/proc/driver/nvidia/params", "PeerMappingOverride=1");

	if (has > 0)
		say(c, GOOD, "driver key", "PeerMappingOverride=1");
	else
		say(c, NOTE, "driver key",
		    "%s; without it the driver maps no doorbell page of a NIC and a host thread rings; fix: "
		    "options nvidia NVreg_RegistryDwords=\"PeerMappingOverride=1;\" in /etc/modprobe.d, and "
		    "load the module anew", has ? "/proc/driver/nvidia/params cannot be read"
						: "PeerMappingOverride is not set");
}

static void check_write_order(struct checks *c)
{
	if (gdri_cuda_late_writes(c->cuda))
		say(c, NOTE, "write ordering",
		    "the GPU may see writes of a NIC late: reads and waits end with a flush");
	else
		say(c, GOOD, "write ordering", "the GPU sees writes of a NIC in their order");
}

static void check_peermem_module(struct checks *c)
{
	if (!access("/sys/module/nvidia_peermem", F_OK) ||
	    !access("/sys/kernel/mm/memory_peers/nv_mem", F_OK))
		say(c, GOOD, "nvidia-peermem", "loaded");
	else
		say(c, NONE, "nvidia-peermem",
		    "not loaded; needed only where dma-buf does not work: modprobe nvidia-peermem");
}

static int one_way(struct checks *c, const char *name, enum gdri_nic_way way, void *p, int control)
{
	struct mlx5dv_devx_umem *umem = NULL;
	struct ibv_mr *mr = NULL;
	char why[256] = "";

	if (control)
		umem = gdri_nic_umem_by(c->nic, way, p, TRY, why, sizeof(why));
	else
		mr = gdri_nic_mr_by(c->nic, way, p, TRY, 0,
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					    IBV_ACCESS_RELAXED_ORDERING, why, sizeof(why));
	say(c, umem || mr ? GOOD : NONE, name, "%s", umem || mr ? "works" : why);
	if (umem)
		mlx5dv_devx_umem_dereg(umem);
	if (mr)
		ibv_dereg_mr(mr);
	return umem || mr;
}

static void check_gpu_memory(struct checks *c)
{
	uint8_t *p = NULL, *whole;
	int data = 0, control = 0;

	whole = gdri_cuda_alloc(c->cuda, TRY + (64u << 10));
	if (!whole) {
		say(c, BAD, "GPU memory", "%s", gdri_log_last_error());
		return;
	}
	p = (uint8_t *)(((uintptr_t)whole + 0xffff) & ~(uintptr_t)0xffff);
	data |= one_way(c, "data direct, data", GDRI_NIC_DATA_DIRECT, p, 0);
	data |= one_way(c, "dma-buf, data", GDRI_NIC_DMA_BUF, p, 0);
	control |= one_way(c, "dma-buf, queues", GDRI_NIC_DMA_BUF, p, 1);
	data |= one_way(c, "peermem, data", GDRI_NIC_PEERMEM, p, 0);
	control |= one_way(c, "peermem, queues", GDRI_NIC_PEERMEM, p, 1);
	if (data)
		say(c, GOOD, "heap in GPU memory", "yes");
	else
		say(c, BAD, "heap in GPU memory", "no: neither way above works; fix one, or GDR_HEAP_KIND=host");
	if (!control)
		say(c, NOTE, "queues in GPU memory", "no: neither way above works; they go to host memory");
	gdri_cuda_free(c->cuda, whole);
}

int check_machine(void)
{
	struct checks c = {0};

	if (gdri_options_read(&c.opt, NULL) || gdri_options_check(&c.opt))
		return 1;
	check_memlock(&c);
	check_gpu(&c);
	if (c.cuda) {
		check_driver_key(&c);
		check_write_order(&c);
		check_peermem_module(&c);
	}
	check_nic(&c);
	if (c.nic) {
		check_host_memory(&c);
		if (c.cuda)
			check_gpu_memory(&c);
		check_queues(&c);
	}
	if (c.nic)
		gdri_nic_close(&c.nic->net);
	gdri_cuda_close(c.cuda);
	printf("%s\n", c.bad ? "something is in the way: see FAIL" : "nothing is in the way");
	return c.bad ? 1 : 0;
}
