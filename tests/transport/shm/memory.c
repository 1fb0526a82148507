// SPDX-License-Identifier: BSD-3-Clause
/* Which memory a request may reach: parts of heaps, which other PEs map by their descriptors, and own buffers. Ranges
 * are checked for each request; a part that left cannot be reached, whatever key names it. */
#define _GNU_SOURCE /* memfd_create */
#include "tests/transport/shm/shm.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <gdr/status.h>

#include "runtime/core/log.h"

static int memory_failed(const char *what)
{
	gdri_error("shm: %s: %s", what, gdri_errno_text(errno));
	return -GDR_ESYSTEM;
}

int shm_memory_open(struct shm_memory *m)
{
	void *p = MAP_FAILED;

	pthread_mutex_init(&m->lock, NULL);
	m->share_fd = memfd_create("gdr-shm", MFD_CLOEXEC);
	if (m->share_fd >= 0 && !ftruncate(m->share_fd, sizeof(*m->share)))
		p = mmap(NULL, sizeof(*m->share), PROT_READ | PROT_WRITE, MAP_SHARED, m->share_fd, 0);
	if (p == MAP_FAILED)
		return memory_failed("the list of the heap's parts");
	m->share = p;
	if (getrandom(m->share->token, SHM_TOKEN, 0) != SHM_TOKEN)
		return memory_failed("getrandom");
	return 0;
}

static void peer_close(struct shm_peer *p)
{
	int i;

	for (i = 0; p->share && i < SHM_REGIONS; i++)
		if (p->mapped[i])
			munmap(p->mapped[i], p->share->regions[i].len);
	if (p->share)
		munmap(p->share, sizeof(*p->share));
}

void shm_memory_close(struct shm_memory *m)
{
	int i;

	for (i = 0; m->peers && i < m->n_pes; i++)
		peer_close(&m->peers[i]);
	free(m->peers);
	if (m->share)
		munmap(m->share, sizeof(*m->share));
	if (m->share_fd >= 0)
		close(m->share_fd);
	pthread_mutex_destroy(&m->lock);
}

/* ---- own parts ---- */

struct file {
	unsigned int major, minor;
	unsigned long inode;
};

/* The file that is mapped at addr, and where in it. */
static bool memory_file(const uint8_t *addr, struct file *file, uint64_t *at)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long from, to, offset, where = (uintptr_t)addr;
	bool found = false;

	while (f && !found &&
	       fscanf(f, "%lx-%lx %*4s %lx %x:%x %lu%*[^\n]", &from, &to, &offset, &file->major, &file->minor,
		      &file->inode) == 6)
		found = where >= from && where < to;
	if (f)
		fclose(f);
	*at = found ? offset + (where - from) : 0;
	return found && file->inode;
}

static bool is_file(int fd, const struct file *file, uint64_t end)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_ino == file->inode && major(st.st_dev) == file->major &&
	       minor(st.st_dev) == file->minor && (uint64_t)st.st_size >= end;
}

/* A descriptor of this process for it; -1: none. */
static int memory_descriptor(const struct file *file, uint64_t end)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;
	int fd = -1;

	while (dir && fd < 0 && (e = readdir(dir)))
		if (e->d_name[0] != '.' && is_file(atoi(e->d_name), file, end))
			fd = atoi(e->d_name);
	if (dir)
		closedir(dir);
	return fd;
}

int shm_memory_add(struct shm_memory *m, uint8_t *addr, size_t len, uint64_t offset)
{
	struct shm_region *r = &m->share->regions[m->n];
	struct file file = {0};
	uint64_t at;

	if (m->n == SHM_REGIONS) {
		gdri_error("shm: more than %d parts of a heap", SHM_REGIONS);
		return -GDR_ENOMEM;
	}
	r->fd = memory_file(addr, &file, &at) ? memory_descriptor(&file, at + len) : -1;
	if (r->fd < 0) {
		gdri_error("shm: %p with %zu bytes is not shared memory of an open descriptor", (void *)addr, len);
		return -GDR_ENOTSUP;
	}
	r->offset = offset;
	r->len = len;
	r->at = at;
	r->own = addr;
	/* release: pairs with the acquire in region_is_live */
	__atomic_store_n(&r->live, 1, __ATOMIC_RELEASE);
	m->change[m->n++] = SHM_COMES;
	return 0;
}

/* ---- parts of all PEs ---- */

int shm_memory_connect(struct shm_memory *m, int peer, pid_t pid, int fd, const uint8_t *token)
{
	struct shm_peer *p = &m->peers[peer];
	char path[64];
	void *at = MAP_FAILED;
	int own;

	p->pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	own = open(path, O_RDONLY | O_CLOEXEC);
	if (own >= 0)
		at = mmap(NULL, sizeof(*p->share), PROT_READ, MAP_SHARED, own, 0);
	if (own >= 0)
		close(own);
	if (at == MAP_FAILED) {
		gdri_error("shm: PE %d: %s: %s", peer, path, gdri_errno_text(errno));
		return -GDR_ESYSTEM;
	}
	p->share = at;
	if (!memcmp(p->share->token, token, SHM_TOKEN))
		return 0;
	gdri_error("shm: PE %d: process %d here is another one; all PEs have to be on one node", peer, (int)pid);
	return -GDR_ENOTSUP;
}

static bool region_is_live(const struct shm_region *r)
{
	/* acquire: pairs with the release in shm_memory_add */
	return __atomic_load_n(&r->live, __ATOMIC_ACQUIRE);
}

static uint8_t *region_map(const struct shm_peer *p, const struct shm_region *r)
{
	char path[64];
	void *at = MAP_FAILED;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)p->pid, r->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		at = mmap(NULL, r->len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)r->at);
	if (fd >= 0)
		close(fd);
	return at == MAP_FAILED ? NULL : at;
}

/* Begin of part i of the peer's heap in this process; NULL: it may not be reached, or no more. */
static uint8_t *region_here(struct shm_memory *m, int pe, int i)
{
	struct shm_peer *p = &m->peers[pe];
	const struct shm_region *r = &p->share->regions[i];
	bool live = region_is_live(r);

	if (pe == m->pe)
		return live ? r->own : NULL;
	if (live && !p->mapped[i])
		p->mapped[i] = region_map(p, r);
	if (!live && p->mapped[i]) {
		munmap(p->mapped[i], r->len);
		p->mapped[i] = NULL;
	}
	return p->mapped[i];
}

uint8_t *shm_at(struct shm_memory *m, struct shm_place place, uint64_t *row)
{
	const struct shm_region *r;
	uint8_t *here;
	int i;

	*row = UINT64_MAX;
	if (place.pe < 0)
		return (uint8_t *)(uintptr_t)place.addr;
	for (i = 0; i < SHM_REGIONS; i++) {
		r = &m->peers[place.pe].share->regions[i];
		if (place.addr - r->offset >= r->len)
			continue;
		here = region_here(m, place.pe, i);
		*row = r->len - (place.addr - r->offset);
		if (here)
			return here + (place.addr - r->offset);
	}
	return NULL;
}

static bool heap_has(struct shm_memory *m, struct shm_place place, uint64_t len)
{
	uint64_t row;

	for (;;) {
		if (!shm_at(m, place, &row))
			return false;
		if (row >= len)
			return true;
		place.addr += row;
		len -= row;
	}
}

bool shm_remote(struct shm_memory *m, int peer, uint32_t rkey, uint64_t addr, uint64_t len,
		   struct shm_place *out)
{
	*out = (struct shm_place){peer, addr};
	return (rkey == SHM_KEY_DATA || rkey == SHM_KEY_SYNC) && heap_has(m, *out, len);
}

/* ---- local ends ---- */

static bool buffer_has(struct shm_memory *m, uint32_t i, uint64_t addr, uint64_t len)
{
	const struct shm_buffer *b = &m->buffers[i];
	bool has;

	if (i >= SHM_BUFFERS)
		return false;
	pthread_mutex_lock(&m->lock);
	has = addr - b->addr < b->len && len <= b->len - (addr - b->addr);
	pthread_mutex_unlock(&m->lock);
	return has;
}

bool shm_local_end(struct shm_memory *m, uint32_t lkey, uint64_t addr, uint64_t len, struct shm_place *out)
{
	*out = (struct shm_place){lkey >= SHM_KEY_BUFFER ? -1 : m->pe, addr};
	if (out->pe < 0)
		return buffer_has(m, lkey - SHM_KEY_BUFFER, addr, len);
	return lkey == SHM_KEY_SYNC && heap_has(m, *out, len);
}
