// SPDX-License-Identifier: BSD-3-Clause
/* Memory of cuMemAlloc that other processes open: a memfd, with a page behind it in which they count. As with the real
 * driver a handle is of the whole allocation, opens at an address of the driver's choice, not in the process that made
 * it, not when that has freed it, and a second time at the same address. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/cuda/cuda_api.h"
#include "tests/unit/fake_cuda.h"

enum { INVALID = 1, INVALID_CONTEXT = 201, MAP_FAILED_HERE = 205, INVALID_HANDLE = 400, NOT_SUPPORTED = 801 };
enum { MOST = 32 };
#define PAGE 4096ul

#define ADD(field, n) __atomic_add_fetch(&fake_cuda.field, n, __ATOMIC_RELAXED)
#define SEEN(field)   __atomic_load_n(&fake_cuda.field, __ATOMIC_RELAXED)

#define FAKE gdri_cu_result __attribute__((visibility("default")))
#define DECLARE(name, symbol, args) FAKE fake_##name args __asm__(symbol);
GDRI_CUDA_FUNCTIONS(DECLARE)

struct count { /* atomic: of all processes */
	int open, freed;
};

struct letter { /* what a handle says */
	int pid, fd;
	unsigned long size;
};

static struct shared { /* own memory, or (letter.pid another's) what is open here */
	unsigned long at;
	struct letter letter;
	struct count *count;
	int refs;
} all[MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct shared *find(unsigned long at)
{
	int i;

	for (i = 0; i < MOST; i++)
		if (all[i].at == at)
			return &all[i];
	return NULL;
}

static struct count *map_count(const struct letter *l)
{
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, (off_t)l->size);

	return p == MAP_FAILED ? NULL : p;
}

unsigned long fake_shared_alloc(unsigned long size, unsigned long align)
{
	struct letter l = {getpid(), memfd_create("fake-cuda", MFD_CLOEXEC), size};
	unsigned long room, at = 0;
	struct shared *s;
	void *p;

	p = mmap(NULL, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (l.fd < 0 || ftruncate(l.fd, (off_t)(size + PAGE)) || p == MAP_FAILED)
		return 0;
	room = (unsigned long)p;
	at = (room + align - 1) & ~(align - 1);
	if (mmap((void *)at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, l.fd, 0) == MAP_FAILED)
		return 0;
	pthread_mutex_lock(&lock);
	s = find(0);
	if (s)
		*s = (struct shared){at, l, map_count(&l), 0};
	pthread_mutex_unlock(&lock);
	return s && s->count ? at : 0;
}

int fake_shared_free(unsigned long at)
{
	struct shared *s;

	pthread_mutex_lock(&lock);
	s = find(at);
	if (s) {
		/* both seq_cst: pairs with the other process's, which counts and then looks whether it is too late */
		__atomic_store_n(&s->count->freed, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&s->count->open, __ATOMIC_SEQ_CST))
			ADD(freed_open, 1);
		munmap((void *)at, s->letter.size);
		munmap(s->count, PAGE);
		close(s->letter.fd);
		s->at = 0;
	}
	pthread_mutex_unlock(&lock);
	return s != NULL;
}

gdri_cu_result fake_ipc_get(struct gdri_cu_ipc *handle, gdri_cu_ptr p)
{
	struct shared *s;
	int i;

	memset(handle, 0, sizeof(*handle));
	pthread_mutex_lock(&lock);
	for (i = 0, s = NULL; i < MOST; i++)
		if (all[i].at && p - all[i].at < all[i].letter.size && all[i].letter.pid == getpid())
			s = &all[i];
	if (s)
		memcpy(handle, &s->letter, sizeof(s->letter));
	pthread_mutex_unlock(&lock);
	return s ? 0 : SEEN(ipc) ? INVALID : NOT_SUPPORTED;
}

static gdri_cu_result open_new(const struct letter *from, struct shared *s)
{
	struct letter l = *from;
	char path[64];
	void *p;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", l.pid, l.fd);
	l.fd = open(path, O_RDWR | O_CLOEXEC);
	if (l.fd < 0)
		return MAP_FAILED_HERE;
	p = mmap(NULL, l.size, PROT_READ | PROT_WRITE, MAP_SHARED, l.fd, 0);
	s->count = map_count(&l);
	close(l.fd);
	if (p == MAP_FAILED || !s->count)
		return MAP_FAILED_HERE;
	__atomic_add_fetch(&s->count->open, 1, __ATOMIC_SEQ_CST); /* pairs as said in fake_shared_free */
	if (__atomic_load_n(&s->count->freed, __ATOMIC_SEQ_CST) || fake_range_add((unsigned long)p, l.size)) {
		__atomic_sub_fetch(&s->count->open, 1, __ATOMIC_SEQ_CST);
		return INVALID_HANDLE;
	}
	s->at = (unsigned long)p;
	s->letter = *from;
	ADD(opened, 1);
	return 0;
}

gdri_cu_result fake_ipc_open(gdri_cu_ptr *at, struct gdri_cu_ipc handle, unsigned int flags)
{
	struct shared *s = NULL;
	gdri_cu_result r = 0;
	struct letter l;
	int i;

	memcpy(&l, &handle, sizeof(l));
	if (SEEN(ipc_result) || flags != GDRI_CU_IPC_LAZY || l.pid == getpid())
		return SEEN(ipc_result) ? SEEN(ipc_result) : l.pid == getpid() ? INVALID_CONTEXT : INVALID;
	pthread_mutex_lock(&lock);
	for (i = 0; i < MOST && !s; i++)
		if (all[i].at && !memcmp(&all[i].letter, &l, sizeof(l)))
			s = &all[i];
	if (!s) {
		s = find(0);
		r = s ? open_new(&l, s) : MAP_FAILED_HERE;
	}
	if (!r) {
		s->refs++;
		*at = s->at;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

gdri_cu_result fake_ipc_close(gdri_cu_ptr at)
{
	struct shared *s;
	int known;

	pthread_mutex_lock(&lock);
	s = find(at);
	known = at && s && s->refs;
	if (known && !--s->refs) {
		if (fake_is_used(s->at, s->letter.size))
			ADD(unmapped_under, 1);
		munmap((void *)s->at, s->letter.size);
		fake_range_remove(s->at);
		/* release: pairs with the load in fake_shared_free */
		__atomic_sub_fetch(&s->count->open, 1, __ATOMIC_RELEASE);
		munmap(s->count, PAGE);
		s->at = 0;
		ADD(opened, -1);
	}
	pthread_mutex_unlock(&lock);
	return known ? 0 : INVALID;
}
