/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks on memory that the program registers. The kernel pins pages and fails
 * with EFAULT where there are none; here /proc/self/maps is asked, so that a
 * bad range is refused at registration instead of faulting in the engine. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "softhca/driver/control.h"
#include "softhca/gpu/dma.h"
#include "softhca/memory/file_map.h"
#include "softhca/memory/probe.h"
#include "softhca/driver/shim.h"

struct cover {
	uint64_t at, end; /* [at, end) is not covered yet */
	bool write;
	bool bad;
};

static bool range_in_one_mapping(void *arg, const struct maps_line *m)
{
	struct cover *c = arg;

	if (m->end <= c->at)
		return true;
	/* A mapping without read permission can be a UAR page: that is no memory. */
	if (m->start > c->at || m->perms[0] != 'r' || (c->write && m->perms[1] != 'w'))
		c->bad = true;
	else
		c->at = m->end;
	return !c->bad && c->at < c->end;
}

static bool range_is_held(uintptr_t page)
{
	return hca_lock_is_mine() && hca_holds_page(page);
}

int range_check(uint64_t addr, uint64_t len, bool write)
{
	struct cover c = {.at = addr, .end = addr + len, .write = write};

	if (!len)
		return 0;
	if (!addr || addr + len < addr)
		return EFAULT;
	probe_arm(range_is_held); /* it may be unmapped as long as it is used */
	if (!maps_each(range_in_one_mapping, &c))
		return 0; /* no /proc: as if all were well */
	return c.bad || c.at < c.end ? EFAULT : 0;
}

void range_on_demand(void)
{
	probe_arm(range_is_held);
}

int range_map_fd(int fd, uint64_t offset, uint64_t len, bool write, uint8_t **va)
{
	struct stat st;

	if (!len || offset + len < offset)
		return EINVAL;
	if (real_fstat(fd, &st))
		return EBADF;
	/* Beyond the end of the file the engine would get SIGBUS. */
	if (S_ISREG(st.st_mode) && offset + len > (uint64_t)st.st_size)
		return EINVAL;
	*va = file_map(fd, offset, len, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED);
	return *va ? 0 : errno;
}

void range_unmap(uint8_t *va, uint64_t len)
{
	file_unmap(va, len);
}

int range_take(const struct dma_answer *gpu, uint64_t addr, uint64_t len, bool write, bool *device)
{
	int ret = len ? dma_register(gpu, addr, len) : 0;

	*device = ret > 0;
	return ret < 0 ? -ret : ret ? 0 : range_check(addr, len, write);
}

int range_take_fd(const struct dma_answer *gpu, int fd, uint64_t offset, uint64_t len, bool write,
		  uint8_t **va, bool *device)
{
	uint64_t addr = cuda_dmabuf_address(fd, offset, len);
	int ret;

	*device = false;
	if (!addr)
		return range_map_fd(fd, offset, len, write, va);
	if (addr == UINT64_MAX || !len)
		return EINVAL;
	ret = dma_register(gpu, addr, len);
	if (ret <= 0)
		return ret ? -ret : EINVAL; /* freed meanwhile */
	*va = (uint8_t *)(uintptr_t)addr;
	*device = true;
	return 0;
}

void range_give_back(uint8_t *va, uint64_t len, bool device, bool mapped)
{
	if (device)
		dma_forget((uintptr_t)va, len);
	if (mapped)
		range_unmap(va, len);
}
