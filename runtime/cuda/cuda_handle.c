// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE /* memfd_create, seals */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/core/options.h"
#include "runtime/cuda/cuda_impl.h"

#define MAGIC 0x3143524246524447ull
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

/* A fabric's handle in a file, so that it travels as a descriptor of the driver's does. */
struct letter {
	uint64_t magic;
	struct gdri_cu_fabric handle;
};

static gdri_cu_result write_letter(const struct letter *l, int *fd)
{
	*fd = memfd_create("gdr-handle", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd >= 0 && write(*fd, l, sizeof(*l)) == (ssize_t)sizeof(*l) && !fcntl(*fd, F_ADD_SEALS, SEALS))
		return 0;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return GDRI_CU_OPERATING_SYSTEM;
}

/* Foreign: whatever a peer passed. A descriptor of the driver's has no seals. */
static bool read_letter(int fd, struct letter *l)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	return seals >= 0 && (seals & SEALS) == SEALS && !fstat(fd, &st) && st.st_size == (off_t)sizeof(*l) &&
	       pread(fd, l, sizeof(*l), 0) == (ssize_t)sizeof(*l) && l->magic == MAGIC;
}

static gdri_cu_result export_by(struct gdri_cuda *c, int handles, gdri_cu_mem mem, int *fd)
{
	struct letter l = {.magic = MAGIC};
	gdri_cu_result r;

	if (handles == GDRI_CU_HANDLE_FD)
		return c->api.mem_export(fd, mem, GDRI_CU_HANDLE_FD, 0);
	r = c->api.mem_export(&l.handle, mem, GDRI_CU_HANDLE_FABRIC, 0);
	return r ? r : write_letter(&l, fd);
}

gdri_cu_result gdri_cuda_export(struct gdri_cuda *c, gdri_cu_mem mem, int *fd)
{
	return export_by(c, c->handles, mem, fd);
}

gdri_cu_result gdri_cuda_export_foreign(struct gdri_cuda *c, gdri_cu_mem mem, int *fd)
{
	bool by_fd = c->handles == GDRI_CU_HANDLE_FD;

	if (!export_by(c, c->handles, mem, fd))
		return 0;
	return export_by(c, by_fd ? GDRI_CU_HANDLE_FABRIC : GDRI_CU_HANDLE_FD, mem, fd);
}

gdri_cu_result gdri_cuda_import(struct gdri_cuda *c, int fd, gdri_cu_mem *mem)
{
	struct letter l;

	if (read_letter(fd, &l))
		return c->api.mem_import(mem, &l.handle, GDRI_CU_HANDLE_FABRIC);
	return c->api.mem_import(mem, (void *)(intptr_t)fd, GDRI_CU_HANDLE_FD);
}

/* Whether the driver makes, exports and imports such memory: that a device could is not enough, since the user needs a
 * channel of the IMEX service. */
static gdri_cu_result try_fabric(struct gdri_cuda *c)
{
	struct gdri_cu_prop prop = {
		.type = GDRI_CU_MEM_PINNED,
		.handles = GDRI_CU_HANDLE_FABRIC,
		.location = {GDRI_CU_LOCATION_DEVICE, c->device},
	};
	struct gdri_cu_fabric handle;
	gdri_cu_mem mem = 0, again = 0;
	size_t grain = 0;
	gdri_cu_result r;

	gdri_cuda_enter(c);
	r = c->api.granularity(&grain, &prop, GDRI_CU_GRANULARITY_BEST);
	if (!r)
		r = c->api.mem_create(&mem, grain, &prop, 0);
	if (!r) {
		r = c->api.mem_export(&handle, mem, GDRI_CU_HANDLE_FABRIC, 0);
		if (!r)
			r = c->api.mem_import(&again, &handle, GDRI_CU_HANDLE_FABRIC);
		if (!r)
			c->api.mem_release(again);
		c->api.mem_release(mem);
	}
	gdri_cuda_leave(c);
	return r;
}

int gdri_cuda_choose_handles(struct gdri_cuda *c, int wanted)
{
	int fd = 0, fabric = 0;
	const char *why = "the device has none";
	gdri_cu_result r;

	c->api.device_attribute(&fd, GDRI_CU_ATTR_FD, c->device);
	c->handles = GDRI_CU_HANDLE_FD;
	if (fd && wanted != GDRI_HANDLE_FABRIC)
		return 0;
	if (wanted != GDRI_HANDLE_FD) {
		c->api.device_attribute(&fabric, GDRI_CU_ATTR_FABRIC, c->device);
		r = fabric ? try_fabric(c) : 0;
		c->handles = GDRI_CU_HANDLE_FABRIC;
		if (fabric && !r) {
			gdri_info("CUDA: peers map memory of %s by handles of the fabric (%s)", c->text,
				  fd ? "GDR_HEAP_HANDLE" : "it gives no file descriptors");
			return 0;
		}
		if (fabric)
			why = gdri_cuda_error_text(c, r);
	}
	return gdri_fail(-GDR_ENOTSUP,
			 "CUDA: memory of %s cannot be shared: file descriptors %s, handles of the fabric: %s%s",
			 c->text, fd ? "there are" : "there are none", wanted == GDRI_HANDLE_FD ? "not asked for" : why,
			 fabric ? " (the nvidia-imex service has to run and this user to have a channel of it, see "
				  "/dev/nvidia-caps-imex-channels)"
				: "");
}
