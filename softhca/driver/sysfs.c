/* SPDX-License-Identifier: BSD-3-Clause */
/* sysfs files whose content is known only at run time: each open gives a
 * private memory file with the present value. */
#include "softhca/driver/sysfs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softhca/driver/control.h"
#include "softhca/tools/log.h"
#include "softhca/tools/options.h"
#include "softhca/driver/shim.h"

enum value { NODE_GUID, IMAGE_GUID, GID, GID_TYPE, GID_NDEV, LINK_LAYER, LID, STATE, PHYS_STATE };

static const struct {
	const char *name; /* below the device's directory; a / at the end: an index follows */
	enum value value;
} dynamic[] = {
	{"node_guid", NODE_GUID},
	{"sys_image_guid", IMAGE_GUID},
	{"ports/1/gids/", GID},
	{"ports/1/gid_attrs/types/", GID_TYPE},
	{"ports/1/gid_attrs/ndevs/", GID_NDEV},
	{"ports/1/link_layer", LINK_LAYER},
	{"ports/1/lid", LID},
	{"ports/1/state", STATE},
	{"ports/1/phys_state", PHYS_STATE},
};

static void sysfs_guid(uint64_t g, char *out, size_t n)
{
	snprintf(out, n, "%04x:%04x:%04x:%04x\n", (unsigned)(g >> 48) & 0xffff,
		 (unsigned)(g >> 32) & 0xffff, (unsigned)(g >> 16) & 0xffff, (unsigned)g & 0xffff);
}

static void sysfs_gid(const uint8_t g[16], char *out, size_t n)
{
	size_t at = 0;

	for (int i = 0; i < 16 && at < n; i += 2)
		at += (size_t)snprintf(out + at, n - at, "%02x%02x%c", g[i], g[i + 1],
				       i < 14 ? ':' : '\n');
}

/* False: the kernel says EINVAL. An empty entry of the GID table reads as zero, but has no attributes. */
static bool sysfs_text(enum value value, unsigned device, unsigned index, char *out, size_t n)
{
	uint8_t gid[16];
	bool has_gid = port_gid(device, index, gid);

	switch (value) {
	case NODE_GUID:
		sysfs_guid(port_guid(device), out, n);
		return true;
	case IMAGE_GUID:
		sysfs_guid(port_guid(0), out, n); /* one card */
		return true;
	case GID:
		sysfs_gid(gid, out, n);
		return true;
	case GID_TYPE:
		snprintf(out, n, "%s\n", port_is_ib() ? "IB/RoCE v1" : "RoCE v2");
		return has_gid;
	case GID_NDEV:
		snprintf(out, n, "%s\n", dp_interface(device));
		return !port_is_ib() && has_gid;
	case LINK_LAYER:
		snprintf(out, n, "%s\n", port_is_ib() ? "InfiniBand" : "Ethernet");
		return true;
	case LID:
		snprintf(out, n, "0x%x\n", port_lid(device));
		return true;
	case STATE:
		snprintf(out, n, "%s\n", port_is_down() ? "1: DOWN" : "4: ACTIVE");
		return true;
	case PHYS_STATE:
		snprintf(out, n, "%s\n", port_is_down() ? "2: Polling" : "5: LinkUp");
		return true;
	}
	return false;
}

static int memory_file(const char *text)
{
	size_t len = strlen(text);
	int fd = memfd_create("sysfs", MFD_CLOEXEC);

	if (fd >= 0 && !hca_size_file(fd, (off_t)len) && write(fd, text, len) == (ssize_t)len &&
	    lseek(fd, 0, SEEK_SET) == 0)
		return fd;
	hca_warn("the device cannot be described: %s", limits_text(errno).s);
	if (fd >= 0)
		real_close(fd);
	return -1;
}

/* Is this the file of that row, and which? */
static bool sysfs_named(const char *name, const char *row, unsigned *index)
{
	size_t n = strlen(row);
	char *end;

	*index = 0;
	if (row[n - 1] != '/')
		return !strcmp(name, row);
	if (strncmp(name, row, n) || name[n] < '0' || name[n] > '9')
		return false;
	*index = (unsigned)strtoul(name + n, &end, 10);
	return !*end && *index < HCA_GIDS;
}

int sysfs_open_dynamic(const char *path)
{
	static const char prefix[] = "/infiniband/" SYSFS_IBDEV;
	const char *tree = path_sysfs_root();
	const char *name;
	unsigned device;
	char text[128];

	if (!tree || strncmp(path, tree, strlen(tree)))
		return -1;
	name = strstr(path + strlen(tree), prefix);
	if (!name)
		return -1;
	name += sizeof(prefix) - 1;
	if (name[0] < '0' || name[0] >= '0' + HCA_MAX_DEVICES || name[1] != '/')
		return -1;
	device = (unsigned)(name[0] - '0');
	name += 2;
	for (size_t i = 0; i < sizeof(dynamic) / sizeof(dynamic[0]); i++) {
		unsigned index;

		if (!sysfs_named(name, dynamic[i].name, &index))
			continue;
		if (sysfs_text(dynamic[i].value, device, index, text, sizeof(text)))
			return memory_file(text);
		return epoll_create1(EPOLL_CLOEXEC); /* reading it says EINVAL */
	}
	return -1;
}

/* Cheap test first: most relative opens of a program are none of these. */
static bool may_be_dynamic(const char *name)
{
	const char *last = strrchr(name, '/');

	last = last ? last + 1 : name;
	if (*last >= '0' && *last <= '9')
		return true;
	for (size_t i = 0; i < sizeof(dynamic) / sizeof(dynamic[0]); i++) {
		const char *leaf = strrchr(dynamic[i].name, '/');

		if (!strcmp(last, leaf ? leaf + 1 : dynamic[i].name))
			return true;
	}
	return false;
}

int sysfs_open_dynamic_at(int dirfd, const char *name)
{
	char link[32], dir[PATH_MAX], path[PATH_MAX];
	ssize_t n;

	if (!name || name[0] == '/' || dirfd < 0 || !may_be_dynamic(name))
		return -1;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
	n = readlink(link, dir, sizeof(dir) - 1);
	if (n <= 0)
		return -1;
	dir[n] = '\0';
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return -1;
	return sysfs_open_dynamic(path);
}
