// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "tests/unit/fake_cuda.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/cuda/cuda_api.h"

enum { INVALID = 1, NO_MEMORY = 2, NO_DEVICE = 100, NO_CONTEXT = 201 };

struct fake_cuda fake_cuda = {.devices = 1};

#define ADD(field, n) __atomic_add_fetch(&fake_cuda.field, n, __ATOMIC_RELAXED)
#define SEEN(field)   __atomic_load_n(&fake_cuda.field, __ATOMIC_RELAXED)

struct CUctx_st {
	int device;
};
static struct CUctx_st primary;

/* The calling thread's stack of contexts. */
static _Thread_local gdri_cu_ctx stack[8];
static _Thread_local int depth;

#define OPERATIONS 1024

struct operation {
	gdri_cu_ptr dst, src; /* src 0: zeroes */
	size_t len;
};

struct CUstream_st {
	struct CUstream_st *next; /* of all that there are */
	unsigned int first, end;  /* of those that wait, in their order; free-running */
	struct operation waits[OPERATIONS];
};

static gdri_cu_stream all_streams;
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;

#define FAKE gdri_cu_result __attribute__((visibility("default")))
/* The declarations that -Wmissing-prototypes wants, from the library's own table. */
#define DECLARE(name, symbol, args) FAKE fake_##name args __asm__(symbol);
GDRI_CUDA_FUNCTIONS(DECLARE)
GDRI_CUDA_FUNCTIONS_OF_LATE(DECLARE)

gdri_cu_result fake_error_string(gdri_cu_result r, const char **text)
{
	*text = r == NO_MEMORY ? "out of memory" : r ? "an error of the fake" : "no error";
	return 0;
}

gdri_cu_result fake_init(unsigned int flags)
{
	return flags ? INVALID : 0;
}

gdri_cu_result fake_device_count(int *n)
{
	*n = SEEN(devices);
	return 0;
}

gdri_cu_result fake_device_get(gdri_cu_device *d, int i)
{
	*d = i;
	return i < SEEN(devices) ? 0 : NO_DEVICE;
}

gdri_cu_result fake_device_name(char *name, int room, gdri_cu_device d)
{
	snprintf(name, (size_t)room, "Fake %d", d);
	return 0;
}

gdri_cu_result fake_device_attribute(int *value, int what, gdri_cu_device d)
{
	*value = what == GDRI_CU_ATTR_FD ? !SEEN(no_fd) : what == GDRI_CU_ATTR_FABRIC ? !SEEN(no_fabric) :
		 what == GDRI_CU_ATTR_RDMA_ORDER && SEEN(ordered) ? GDRI_CU_RDMA_ORDER_OWNER :
		 what != GDRI_CU_ATTR_HOST_TABLES;
	return d < SEEN(devices) ? 0 : NO_DEVICE;
}

gdri_cu_result fake_device_bus_id(char *id, int room, gdri_cu_device d)
{
	snprintf(id, (size_t)room, "0000:%02x:00.0", d + 1);
	return 0;
}

gdri_cu_result fake_primary_retain(gdri_cu_ctx *ctx, gdri_cu_device d)
{
	primary.device = d;
	*ctx = &primary;
	ADD(retained, 1);
	return 0;
}

gdri_cu_result fake_primary_release(gdri_cu_device d)
{
	(void)d;
	return ADD(retained, -1) < 0 ? INVALID : 0;
}

gdri_cu_result fake_primary_state(gdri_cu_device d, unsigned int *flags, int *active)
{
	*flags = 0;
	*active = SEEN(retained) > 0 && primary.device == d;
	return 0;
}

gdri_cu_result fake_ctx_get(gdri_cu_ctx *ctx)
{
	*ctx = depth ? stack[depth - 1] : NULL;
	return 0;
}

gdri_cu_result fake_ctx_set(gdri_cu_ctx ctx)
{
	depth = ctx ? 1 : 0;
	stack[0] = ctx;
	return 0;
}

gdri_cu_result fake_ctx_push(gdri_cu_ctx ctx)
{
	if (depth == 8)
		return INVALID;
	stack[depth++] = ctx;
	return 0;
}

gdri_cu_result fake_ctx_pop(gdri_cu_ctx *ctx)
{
	if (!depth)
		return NO_CONTEXT;
	*ctx = stack[--depth];
	return 0;
}

gdri_cu_result fake_ctx_flags(unsigned int *flags)
{
	*flags = fake_cuda.flags;
	return depth ? 0 : NO_CONTEXT;
}

gdri_cu_result fake_ctx_set_flags(unsigned int flags)
{
	fake_cuda.flags = flags;
	return depth ? 0 : NO_CONTEXT;
}

gdri_cu_result fake_ctx_device(gdri_cu_device *d)
{
	*d = depth ? stack[depth - 1]->device : 0;
	return depth ? 0 : NO_CONTEXT;
}

/* Memory is made, or kernels are waited for, by another thread than the first. */
static void note_thread(void)
{
	sigset_t mask;

	if (gettid() == getpid())
		return;
	ADD(elsewhere, 1);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	if (!sigismember(&mask, SIGALRM))
		ADD(disturbed, 1);
}

gdri_cu_result fake_ctx_sync(void)
{
	note_thread();
	ADD(syncs, 1);
	ADD(in_sync, 1);
	while (SEEN(hang_sync))
		usleep(1000);
	ADD(in_sync, -1);
	return depth ? SEEN(sync_result) : NO_CONTEXT;
}

gdri_cu_result fake_stream_create(gdri_cu_stream *s, unsigned int flags)
{
	(void)flags;
	*s = calloc(1, sizeof(**s));
	ADD(streams, 1);
	if (!*s)
		return NO_MEMORY;
	pthread_mutex_lock(&all_lock);
	(*s)->next = all_streams;
	all_streams = *s;
	pthread_mutex_unlock(&all_lock);
	return 0;
}

int fake_is_used(unsigned long at, unsigned long size)
{
	const struct operation *o;
	gdri_cu_stream s;
	unsigned int i;
	bool used = false;

	pthread_mutex_lock(&all_lock);
	for (s = all_streams; s; s = s->next) {
		for (i = s->first; i != s->end; i++) {
			o = &s->waits[i % OPERATIONS];
			used |= o->dst - at < size || o->src - at < size;
		}
	}
	pthread_mutex_unlock(&all_lock);
	return used;
}

/* All words in one piece: somebody may look. The last one goes first, for a copy has no order in itself. */
static void move(uint8_t *dst, const uint8_t *src, size_t len)
{
	const uint8_t *end = dst + len;
	uint64_t word;

	if (((uintptr_t)dst | len) & 7) {
		memcpy(dst, src, len);
	} else {
		for (; len; len -= 8) {
			memcpy(&word, src + len - 8, 8);
			/* pairs with the kernel's acquire; all of this stream's copies before stand in front of it */
			__atomic_store_n((uint64_t *)(void *)(dst + len - 8), word, __ATOMIC_RELEASE);
			if (dst + len == end && len > 8)
				sched_yield(); /* who looks may see a part */
		}
	}
}

gdri_cu_result fake_stream_query(gdri_cu_stream s)
{
	const struct operation *o;

	for (; s->first != s->end; s->first++) {
		o = &s->waits[s->first % OPERATIONS];
		if (SEEN(hang_copy) && SEEN(good_copies) <= 0)
			return GDRI_CU_NOT_READY;
		if (o->src - SEEN(held_at) < SEEN(held_len)) {
			ADD(held, 1);
			return GDRI_CU_NOT_READY;
		}
		if (SEEN(hang_copy))
			ADD(good_copies, -1);
		ADD(copied, o->len);
		if (o->src)
			move(fake_reach(o->dst), fake_reach(o->src), o->len);
		else
			memset(fake_reach(o->dst), 0, o->len);
	}
	return 0;
}

gdri_cu_result fake_stream_destroy(gdri_cu_stream s)
{
	gdri_cu_stream *at = &all_streams;

	pthread_mutex_lock(&all_lock);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	pthread_mutex_unlock(&all_lock);
	free(s);
	ADD(streams, -1);
	return depth ? 0 : NO_CONTEXT;
}

static gdri_cu_result enqueue(gdri_cu_stream s, gdri_cu_ptr dst, gdri_cu_ptr src, size_t len)
{
	if (s->end - s->first == OPERATIONS)
		fake_stream_query(s);
	if (s->end - s->first == OPERATIONS || !depth)
		return INVALID;
	s->waits[s->end++ % OPERATIONS] = (struct operation){dst, src, len};
	return 0;
}

gdri_cu_result fake_copy(gdri_cu_ptr dst, gdri_cu_ptr src, size_t len, gdri_cu_stream s)
{
	fake_note_copy(dst, src);
	return src ? enqueue(s, dst, src, len) : INVALID;
}

gdri_cu_result fake_set(gdri_cu_ptr dst, unsigned char byte, size_t len, gdri_cu_stream s)
{
	return byte ? INVALID : enqueue(s, dst, 0, len);
}

/* ---- memory that can be shared: a memfd, whose descriptor is the handle ---- */

#define FABRIC "fake-fabric" /* name of those that were asked for with handles of the fabric */

static bool of_fabric(gdri_cu_mem mem)
{
	char path[64], name[64] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", (int)mem);
	return readlink(path, name, sizeof(name) - 1) > 0 && strstr(name, FABRIC);
}

gdri_cu_result fake_granularity(size_t *grain, const struct gdri_cu_prop *prop, int which)
{
	(void)prop;
	(void)which;
	*grain = 2u << 20;
	return 0;
}

gdri_cu_result fake_mem_create(gdri_cu_mem *mem, size_t size, const struct gdri_cu_prop *prop,
			       unsigned long long flags)
{
	int fd;

	(void)flags;
	note_thread();
	if (SEEN(no_memory))
		return NO_MEMORY;
	if (prop->handles == GDRI_CU_HANDLE_FABRIC && SEEN(fabric_result))
		return SEEN(fabric_result);
	fd = memfd_create(prop->handles == GDRI_CU_HANDLE_FABRIC ? FABRIC : "fake-cuda", MFD_CLOEXEC);
	if ((prop->handles != GDRI_CU_HANDLE_FD && prop->handles != GDRI_CU_HANDLE_FABRIC) || fd < 0 ||
	    ftruncate(fd, (off_t)size))
		return INVALID;
	*mem = (gdri_cu_mem)fd;
	ADD(rdma_memory, prop->flags.rdma);
	return 0;
}

gdri_cu_result fake_mem_release(gdri_cu_mem mem)
{
	return close((int)mem) ? INVALID : 0;
}

gdri_cu_result fake_mem_export(void *fd, gdri_cu_mem mem, int type, unsigned long long flags)
{
	(void)flags;
	if (of_fabric(mem) != (type == GDRI_CU_HANDLE_FABRIC))
		return INVALID;
	if (type == GDRI_CU_HANDLE_FABRIC) { /* good in this process, as long as the memory is there */
		memset(fd, 0x5a, sizeof(struct gdri_cu_fabric));
		ADD(letters, 1);
	}
	*(int *)fd = dup((int)mem);
	return *(int *)fd < 0 ? INVALID : 0;
}

gdri_cu_result fake_mem_import(gdri_cu_mem *mem, void *fd, int type)
{
	int copy = dup(type == GDRI_CU_HANDLE_FABRIC ? *(int *)fd : (int)(intptr_t)fd);

	*mem = (gdri_cu_mem)copy;
	return copy < 0 ? INVALID : 0;
}

static gdri_cu_result place(gdri_cu_ptr *at, size_t size, int prot, int flags, int fd)
{
	void *p = mmap((void *)(uintptr_t)*at, size, prot, flags, fd, 0);

	*at = (uintptr_t)p;
	return p == MAP_FAILED ? NO_MEMORY : 0;
}

gdri_cu_result fake_reserve(gdri_cu_ptr *at, size_t size, size_t align, gdri_cu_ptr hint,
			    unsigned long long flags)
{
	(void)align;
	(void)hint;
	(void)flags;
	*at = 0;
	ADD(memory, 1);
	return place(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

gdri_cu_result fake_unreserve(gdri_cu_ptr at, size_t size)
{
	ADD(memory, -1);
	return munmap((void *)(uintptr_t)at, size) ? INVALID : 0;
}

/* What is mapped where: its handle can be asked for. */
static struct {
	gdri_cu_ptr at;
	size_t size;
	int fd;
} views[32];

static int view_of(gdri_cu_ptr at)
{
	int i;

	for (i = 0; i < 32 && !(views[i].size && at - views[i].at < views[i].size); i++)
		;
	return i;
}

gdri_cu_result fake_mem_retain(gdri_cu_mem *mem, void *p)
{
	int i = view_of((uintptr_t)p), fd = i < 32 ? dup(views[i].fd) : -1;

	*mem = (gdri_cu_mem)fd;
	return fd < 0 ? INVALID : 0;
}

gdri_cu_result fake_map(gdri_cu_ptr at, size_t size, size_t offset, gdri_cu_mem mem,
			unsigned long long flags)
{
	int i;

	(void)flags;
	for (i = 0; i < 32 && views[i].size; i++)
		;
	if (i == 32 || offset || fake_range_add(at, size))
		return INVALID;
	views[i].at = at;
	views[i].size = size;
	views[i].fd = dup((int)mem);
	if (fake_cuda.guarded)
		fake_range_hide(at, mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, (int)mem, 0));
	return place(&at, size, PROT_NONE, MAP_SHARED | MAP_FIXED, (int)mem);
}

gdri_cu_result fake_unmap(gdri_cu_ptr at, size_t size)
{
	int i = view_of(at);

	if (i == 32 || views[i].at != at || views[i].size != size)
		return INVALID;
	if (fake_is_used(at, size))
		ADD(unmapped_under, 1);
	close(views[i].fd);
	views[i].size = 0;
	fake_range_remove(at);
	return place(&at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
}

gdri_cu_result fake_set_access(gdri_cu_ptr at, size_t size, const struct gdri_cu_access *access,
			       size_t n)
{
	(void)access;
	if (fake_cuda.guarded)
		return n != 1;
	return n != 1 || mprotect((void *)(uintptr_t)at, size, PROT_READ | PROT_WRITE) ? INVALID : 0;
}
