// SPDX-License-Identifier: BSD-3-Clause
/* What the host and a container around this process allow. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/net/queues.h"
#include "tools/check/check.h"
#include "tools/check/site.h"

#define IPC_LOCK (1ull << 14) /* CAP_IPC_LOCK */

/* Root of the machine: the capabilities of a user namespace do not count for locked memory. */
static bool host_may_lock(bool *inner)
{
	char text[128] = "0", map[128] = "";
	unsigned long long first = 0, outside = 0, n = 0;

	site_field("/proc/self/status", "CapEff:", text, sizeof(text));
	*inner = site_line(map, sizeof(map), "/proc/self/uid_map") &&
		 (sscanf(map, "%llu %llu %llu", &first, &outside, &n) != 3 || n < 4294967295ull);
	return strtoull(text, NULL, 16) & IPC_LOCK && !*inner;
}

static void check_memlock(struct checks *c)
{
	size_t need = (size_t)c->opt.heap_size + gdri_net_queue_bytes(&c->opt, 2);
	bool inner, may = host_may_lock(&inner), enough,
		    counts = !access("/sys/module/ib_uverbs", F_OK);
	char limit[64] = "no limit";
	struct rlimit r;

	enough = getrlimit(RLIMIT_MEMLOCK, &r) || r.rlim_cur == RLIM_INFINITY;
	if (!enough) {
		snprintf(limit, sizeof(limit), "up to %llu KiB",
			 (unsigned long long)r.rlim_cur >> 10);
		enough = r.rlim_cur >= need;
	}
	say(c, MEMLOCK,
	    enough	     ? GOOD
	    : may || !counts ? NOTE
			     : BAD,
	    "%s; heap and queues take %zu KiB%s", limit, need >> 10,
	    enough   ? ""
	    : may    ? " (CAP_IPC_LOCK goes beyond)"
	    : counts ? ""
		     : " (no driver that counts it is loaded)");
	say(c, CAPABILITIES, enough || may ? GOOD : NOTE, "%sCAP_IPC_LOCK, %s%s", may ? "" : "no ",
	    inner ? "in a user namespace, " : "",
	    enough ? "and it is not needed" : "and locked memory takes it");
}

static void check_page_size(struct checks *c)
{
	long page = sysconf(_SC_PAGESIZE);

	say(c, PAGE_SIZE, page == 4096 || page == 65536 ? GOOD : NOTE, "%ld KiB", page >> 10);
}

static void check_rdma_modules(struct checks *c)
{
	char version[64] = "";
	bool loaded =
		!access("/sys/module/mlx5_ib", F_OK) && !access("/sys/module/mlx5_core", F_OK);

	if (loaded)
		site_line(version, sizeof(version), "/sys/module/mlx5_core/version");
	say(c, RDMA_MODULES, loaded ? GOOD : NONE, "%s%s%s", loaded ? "loaded" : "not loaded",
	    *version ? ", version " : "", version);
}

static void check_rdma_files(struct checks *c)
{
	DIR *d = opendir("/sys/class/infiniband_verbs");
	char path[300], first[256] = "";
	int n = 0, usable = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		if (strncmp(e->d_name, "uverbs", 6))
			continue;
		n++;
		snprintf(path, sizeof(path), "/dev/infiniband/%.200s", e->d_name);
		if (!access(path, R_OK | W_OK))
			usable++;
		else if (!*first)
			snprintf(first, sizeof(first), ", not %.200s", path);
	}
	if (d)
		closedir(d);
	if (!n)
		say(c, RDMA_FILES, NONE, "the kernel knows no RDMA device");
	else
		say(c, RDMA_FILES,
		    !usable	 ? BAD
		    : usable < n ? NOTE
				 : GOOD,
		    "%d of %d can be used%s", usable, n, first);
}

static void check_gpu_driver(struct checks *c)
{
	char text[256];

	if (!site_field("/proc/driver/nvidia/version", "NVRM version:", text, sizeof(text)))
		say(c, GPU_DRIVER, NONE, "none of NVIDIA's is loaded");
	else
		say(c, GPU_DRIVER, strstr(text, "Open") ? GOOD : NOTE, "%s", text);
}

static void check_gpu_files(struct checks *c)
{
	static const char *const files[] = {"/dev/nvidiactl", "/dev/nvidia-uvm"};
	char missing[128] = "";

	if (access("/proc/driver/nvidia/version", F_OK)) {
		say(c, GPU_FILES, NONE, "no driver of NVIDIA's is loaded");
		return;
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (access(files[i], R_OK | W_OK))
			snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing),
				 " %s", files[i]);
	say(c, GPU_FILES, *missing ? BAD : GOOD, "%s%s",
	    *missing ? "cannot be opened:" : "can be opened", missing);
}

void check_host(struct checks *c)
{
	check_memlock(c);
	check_page_size(c);
	check_rdma_modules(c);
	check_rdma_files(c);
	check_gpu_driver(c);
	check_gpu_files(c);
}
