/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths of the emulated device. sysfs paths of the RDMA classes, and of the
 * PCI device behind ours, are answered from a read-only tree that lies beside
 * the library; nothing is written at run time, so nothing can be left behind. */
#include "softhca/driver/shim.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "softhca/gpu/cuda_api.h"
#include "softhca/tools/options.h"
#include "softhca/driver/sysfs.h"

static char root[PATH_MAX]; /* empty: not found */
static size_t root_len;

static void find_root(void)
{
	Dl_info info;
	uint32_t devices = hca_options()->devices;
	char tree[PATH_MAX];
	char *slash;

	if (!dladdr((void *)(uintptr_t)&find_root, &info) || !info.dli_fname)
		return;
	if (strlen(info.dli_fname) + sizeof("/sysfs-4") > sizeof(tree))
		return;
	strcpy(tree, info.dli_fname);
	slash = strrchr(tree, '/');
	/* A tree for each number of devices: directories are read without us. */
	strcpy(slash ? slash + 1 : tree, "sysfs");
	if (devices > 1)
		sprintf(tree + strlen(tree), "-%u", (unsigned)devices);
	if (real_realpath(tree, root))
		root_len = strlen(root);
	else
		root[0] = '\0';
}

const char *path_sysfs_root(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_root);
	return root_len ? root : NULL;
}

/* The number of one digit at the end of a name, if there is such a device. */
static int number_at(const char *text)
{
	unsigned n = (unsigned)(*text - '0');

	return *text >= '0' && n < hca_options()->devices ? (int)n : -1;
}

/* What follows the prefix in the path; NULL: it begins otherwise. */
static const char *path_behind(const char *path, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(path, prefix, n) ? NULL : path + n;
}

bool path_is_gpu(const char *path)
{
	return path && (!strncmp(path, "/dev/nvidia", 11) || !strcmp(path, "/dev/kfd"));
}

int path_device(const char *path)
{
	path = path ? path_behind(path, SYSFS_DEVICE_FILE) : NULL;
	return path && path[0] && !path[1] ? number_at(path) : -1;
}

/* Ends the component here? */
static bool at_end(char c)
{
	return c == '\0' || c == '/';
}

static bool is_ours(const char *path)
{
	const char *rest;

	if (strncmp(path, "/sys/", 5))
		return false;
	if ((rest = path_behind(path, "/sys/class/infiniband")))
		return at_end(*rest) || *rest == '_';
	if ((rest = path_behind(path, "/sys/devices/" SYSFS_PCI_ROOT)))
		return at_end(*rest);
	rest = path_behind(path, "/sys/bus/pci/devices/" SYSFS_PCI_BDF);
	return rest && number_at(rest) >= 0 && at_end(rest[1]);
}

const char *path_rewrite(const char *path, char *buf)
{
	const char *tree;

	if (!path || !is_ours(path))
		return path;
	tree = path_sysfs_root();
	path += strlen("/sys");
	if (!tree || root_len + strlen(path) >= PATH_MAX)
		return path - strlen("/sys");
	memcpy(buf, tree, root_len);
	strcpy(buf + root_len, path);
	return buf;
}

void path_restore(char *path)
{
	const char *tree = path_sysfs_root();
	size_t rest;

	if (!tree || strncmp(path, tree, root_len) || path[root_len] != '/')
		return;
	rest = strlen(path + root_len) + 1;
	if (root_len < strlen("/sys"))
		return;
	memmove(path + strlen("/sys"), path + root_len, rest);
	memcpy(path, "/sys", strlen("/sys"));
}

bool path_is_peermem(const char *path)
{
	static const char *const names[] = {
		"/sys/kernel/mm/memory_peers/nv_mem/version",
		"/sys/kernel/mm/memory_peers/nv_mem_nc/version",
		"/sys/module/nvidia_peermem/version",
	};

	for (size_t i = 0; path && i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(path, names[i]))
			return cuda_loaded();
	return false;
}

void device_stat(unsigned device, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFCHR | 0666;
	st->st_rdev = makedev(SYSFS_MAJOR, SYSFS_MINOR + device);
	st->st_nlink = 1;
	st->st_blksize = 4096;
	st->st_uid = 0;
	st->st_ino = 1 + device;
}
