// SPDX-License-Identifier: BSD-3-Clause
/* Which memory is the fake GPU's, and host memory that it maps. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/cuda/cuda_api.h"
#include "tests/unit/fake_cuda.h"

enum { INVALID = 1, NO_MEMORY = 2, RANGES = 256 };
#define ALIGN 0x10000ul

#define ADD(field, n) __atomic_add_fetch(&fake_cuda.field, n, __ATOMIC_RELAXED)
#define SEEN(field)   __atomic_load_n(&fake_cuda.field, __ATOMIC_RELAXED)

#define FAKE gdri_cu_result __attribute__((visibility("default")))
#define DECLARE(name, symbol, args) FAKE fake_##name args __asm__(symbol);
GDRI_CUDA_FUNCTIONS(DECLARE)

static struct range {
	unsigned long at, size;
	int plain, pooled; /* of cuMemAlloc; of a pool */
	void *alias; /* NULL: it is found where it is */
} ranges[RANGES];
static struct range pinned[RANGES]; /* memory of the host that copies reach without the driver's help */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int add(struct range *list, unsigned long at, unsigned long size)
{
	int i, ret = -1;

	pthread_mutex_lock(&lock);
	for (i = 0; i < RANGES && list[i].size; i++)
		;
	if (i < RANGES) {
		list[i] = (struct range){at, size, 0, 0, NULL};
		ret = 0;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

static struct range *find_in(struct range *list, unsigned long at)
{
	int i;

	for (i = 0; i < RANGES; i++) {
		if (at - list[i].at < list[i].size)
			return &list[i];
	}
	return NULL;
}

static struct range *find(unsigned long at)
{
	return find_in(ranges, at);
}

static void take_out(struct range *list, unsigned long at)
{
	struct range *r;

	pthread_mutex_lock(&lock);
	r = find_in(list, at);
	if (r)
		r->size = 0;
	pthread_mutex_unlock(&lock);
}

int fake_range_add(unsigned long at, unsigned long size)
{
	return add(ranges, at, size);
}

void fake_range_remove(unsigned long at)
{
	struct range *r = find(at);

	if (r && r->alias)
		munmap(r->alias, r->size);
	take_out(ranges, at);
}

void fake_range_hide(unsigned long at, void *alias)
{
	pthread_mutex_lock(&lock);
	find(at)->alias = alias;
	pthread_mutex_unlock(&lock);
}

void *fake_reach(unsigned long at)
{
	struct range *r;
	void *p;

	pthread_mutex_lock(&lock);
	r = find(at);
	p = r && r->alias ? (char *)r->alias + (at - r->at) : (void *)at;
	pthread_mutex_unlock(&lock);
	return p;
}

int fake_gpu(int (*kernel)(void *arg), void *arg, int *pid)
{
	int i;

	*pid = fork();
	if (*pid)
		return *pid < 0;
	for (i = 0; i < RANGES; i++)
		if (ranges[i].size && ranges[i].alias)
			mprotect((void *)ranges[i].at, ranges[i].size, PROT_READ | PROT_WRITE);
	_exit(kernel(arg));
}

gdri_cu_result fake_host_alloc(void **p, size_t size, unsigned int flags)
{
	(void)flags;
	size = (size + 255) / 256 * 256;
	if (fake_cuda.guarded)
		*p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	else
		*p = aligned_alloc(256, size);
	if (!*p || *p == MAP_FAILED || add(pinned, (uintptr_t)*p, size))
		return NO_MEMORY;
	ADD(memory, 1);
	return 0;
}

gdri_cu_result fake_host_free(void *p)
{
	struct range *r = find_in(pinned, (uintptr_t)p);
	unsigned long size = r ? r->size : 0;

	take_out(pinned, (uintptr_t)p);
	if (fake_cuda.guarded)
		munmap(p, size);
	else
		free(p);
	ADD(memory, -1);
	return 0;
}

/* At a multiple of ALIGN, which copies alone reach; 0: there is none. */
static unsigned long hidden_alloc(unsigned long size, void **alias)
{
	char *room = mmap(NULL, size + ALIGN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned long at = ((unsigned long)room + ALIGN - 1) & ~(ALIGN - 1);
	int fd = memfd_create("fake-cuda", MFD_CLOEXEC);

	if (room == MAP_FAILED || fd < 0 || ftruncate(fd, (off_t)size))
		return 0;
	*alias = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mmap((void *)at, size, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		at = 0;
	close(fd);
	return *alias == MAP_FAILED ? 0 : at;
}

void fake_note_copy(unsigned long dst, unsigned long src)
{
	unsigned long host;

	pthread_mutex_lock(&lock);
	host = find(dst) ? src : dst;
	if ((find(dst) || find(src)) && !find(host) && !find_in(pinned, host))
		ADD(pageable, 1);
	pthread_mutex_unlock(&lock);
}

gdri_cu_result fake_alloc(gdri_cu_ptr *p, size_t size)
{
	size_t whole = (size + ALIGN - 1) & ~(ALIGN - 1);
	void *alias = NULL;
	unsigned long at = SEEN(guarded) ? hidden_alloc(whole, &alias)
			   : SEEN(ipc)	 ? fake_shared_alloc(whole, ALIGN)
					 : (unsigned long)aligned_alloc(ALIGN, whole);
	struct range *r;

	if (!at || fake_range_add(at, whole))
		return NO_MEMORY;
	pthread_mutex_lock(&lock);
	r = find(at);
	r->plain = 1;
	r->alias = alias;
	r->pooled = SEEN(pooled);
	pthread_mutex_unlock(&lock);
	*p = at;
	ADD(memory, 1);
	return 0;
}

gdri_cu_result fake_free(gdri_cu_ptr p)
{
	struct range *r = find(p);

	unsigned long size = r ? r->size : 0;
	int hidden = r && r->alias;

	if (!r || r->at != p)
		return INVALID;
	fake_range_remove(p);
	if (hidden)
		munmap((void *)(uintptr_t)p, size);
	else if (!fake_shared_free(p))
		free((void *)(uintptr_t)p);
	ADD(memory, -1);
	return 0;
}

gdri_cu_result fake_module_global(gdri_cu_ptr *p, size_t *size, struct CUmod_st *module, const char *name)
{
	void *own = fake_module_variable(module);

	(void)name;
	*p = (uintptr_t)(own ? own : fake_cuda.variable);
	*size = fake_cuda.variable_size;
	return *p ? 0 : INVALID;
}

gdri_cu_result fake_host_register(void *p, size_t len, unsigned int flags)
{
	if ((uintptr_t)p & 4095 || len & 4095)
		return INVALID;
	(void)flags;
	if (len == 4096 && SEEN(page_result))
		return SEEN(page_result);
	if (add(pinned, (uintptr_t)p, len))
		return NO_MEMORY;
	ADD(mapped, 1);
	return 0;
}

gdri_cu_result fake_host_unregister(void *p)
{
	take_out(pinned, (uintptr_t)p);
	return ADD(mapped, -1) < 0 ? INVALID : 0;
}

gdri_cu_result fake_host_pointer(gdri_cu_ptr *at, void *p, unsigned int flags)
{
	*at = (uintptr_t)p;
	return flags ? INVALID : 0;
}

/* As the driver: what an attribute is not known of has 0. */
gdri_cu_result fake_pointer_attributes(unsigned int n, int *what, void **out, gdri_cu_ptr p)
{
	struct range none = {0, 0, 0, 0, NULL}, r = none, *found;

	pthread_mutex_lock(&lock);
	found = find(p);
	if (found)
		r = *found;
	pthread_mutex_unlock(&lock);
	if (n != 1)
		return INVALID;
	switch (*what) {
	case GDRI_CU_POINTER_TYPE:
		*(unsigned int *)*out = r.size ? GDRI_CU_POINTER_DEVICE : 0;
		return 0;
	case GDRI_CU_POINTER_ORDINAL:
		*(int *)*out = 0;
		return 0;
	case GDRI_CU_POINTER_IPC:
		*(unsigned char *)*out = r.plain && !r.pooled;
		return 0;
	case GDRI_CU_POINTER_BEGIN:
		*(uint64_t *)*out = r.at;
		return 0;
	case GDRI_CU_POINTER_SIZE:
		*(uint64_t *)*out = r.size;
		return 0;
	case GDRI_CU_POINTER_POOL:
		*(uint64_t *)*out = (uint64_t)r.pooled;
		return 0;
	default:
		return INVALID;
	}
}
