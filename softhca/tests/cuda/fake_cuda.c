/* SPDX-License-Identifier: BSD-3-Clause */
/* libcuda.so.1 for tests on machines without a GPU. Memory of the GPU is memory at addresses that
 * the CPU must not touch (PROT_NONE); this driver, and a test that plays the kernels, reach it
 * through a second mapping (fake_cuda_view). Streams are threads that take their time and do a
 * copy in pieces in any order; the copies of one batch are mixed. What a stream does next comes
 * behind it, unless FAKE_CUDA_UNORDERED=1, which shows that a test notices.
 *
 * FAKE_CUDA_SEED chooses delays and orders. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "softhca/tests/cuda/fake_cuda.h"

/* The prototypes are in NVIDIA's cuda.h, which need not be here. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT __attribute__((visibility("default")))

enum { INVALID = 1, NO_MEMORY = 2, NOT_FOUND = 500, NOT_READY = 600, NOT_SUPPORTED = 801 };
enum { ALLOCS = 256, PIECE = 64, PINNED = 64 };

typedef uint64_t ptr;

/* ---- memory ---- */

static struct alloc {
	uint8_t *dev, *view;
	size_t size;
	int fd;
} allocs[ALLOCS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct alloc *find(ptr p)
{
	for (unsigned i = 0; i < ALLOCS; i++)
		if (allocs[i].dev && p >= (uintptr_t)allocs[i].dev &&
		    p < (uintptr_t)allocs[i].dev + allocs[i].size)
			return &allocs[i];
	return NULL;
}

static uint8_t *view_of(ptr p)
{
	struct alloc *a = find(p);

	return a ? a->view + (p - (uintptr_t)a->dev) : (uint8_t *)(uintptr_t)p;
}

EXPORT void *fake_cuda_view(uint64_t p)
{
	struct alloc *a;
	void *v;

	pthread_mutex_lock(&lock);
	a = find(p);
	v = a ? view_of(p) : NULL;
	pthread_mutex_unlock(&lock);
	return v;
}

static int add(int fd, size_t size, ptr *out)
{
	unsigned i = 0;

	while (i < ALLOCS && allocs[i].dev)
		i++;
	if (i == ALLOCS)
		return NO_MEMORY;
	allocs[i].dev = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	allocs[i].view = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (allocs[i].dev == MAP_FAILED || allocs[i].view == MAP_FAILED) {
		allocs[i].dev = NULL;
		return NO_MEMORY;
	}
	allocs[i].size = size;
	allocs[i].fd = fd;
	*out = (uintptr_t)allocs[i].dev;
	return 0;
}

EXPORT int cuMemAlloc_v2(ptr *out, size_t n)
{
	size_t size = (n + 65535) & ~(size_t)65535;
	int fd = memfd_create("gpu", MFD_CLOEXEC), rc = NO_MEMORY;

	pthread_mutex_lock(&lock);
	if (fd >= 0 && !ftruncate(fd, (off_t)size))
		rc = add(fd, size, out);
	pthread_mutex_unlock(&lock);
	if (rc && fd >= 0)
		close(fd);
	return rc;
}

EXPORT int cuMemFree_v2(ptr p)
{
	struct alloc *a;

	fake_driver_enter();
	fake_driver_wait();
	fake_driver_leave();
	pthread_mutex_lock(&lock);
	a = find(p);
	if (a && (uintptr_t)a->dev == p) {
		munmap(a->dev, a->size);
		munmap(a->view, a->size);
		close(a->fd);
		a->dev = NULL;
	}
	pthread_mutex_unlock(&lock);
	return a ? 0 : INVALID;
}

EXPORT int cuMemGetAddressRange_v2(ptr *base, size_t *size, ptr p)
{
	struct alloc *a = find(p);

	if (!a)
		return NOT_FOUND;
	*base = (uintptr_t)a->dev;
	*size = a->size;
	return 0;
}

EXPORT int cuPointerGetAttribute(void *out, int attribute, ptr p)
{
	static int context;
	unsigned two = 2, zero = 0;
	void *ctx = &context;

	fake_driver_enter();
	fake_driver_leave();
	if (!fake_cuda_view(p))
		return INVALID;
	if (attribute == 1)
		memcpy(out, &ctx, sizeof(ctx));
	else if (attribute == 9)
		*(int *)out = getenv("FAKE_CUDA_OTHER") ? 1 : 0; /* all memory is another GPU's */
	else
		memcpy(out, attribute == 2 ? &two : &zero, sizeof(two));
	return attribute <= 2 || attribute == 6 || attribute >= 8 ? 0 : INVALID;
}

EXPORT int cuMemHostAlloc(void **out, size_t n, unsigned flags)
{
	(void)flags;
	fake_driver_enter();
	fake_driver_leave();
	*out = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return *out == MAP_FAILED ? NO_MEMORY : 0;
}

/* ---- registered memory of the host ---- */

static void *registered[PINNED];

EXPORT int cuMemHostRegister_v2(void *p, size_t n, unsigned flags)
{
	(void)n;
	if (flags & 4) /* IOMEMORY: it is memory */
		return INVALID;
	for (int i = 0; i < PINNED; i++)
		if (registered[i] == p)
			return 712; /* already registered */
	for (int i = 0; i < PINNED; i++)
		if (!registered[i]) {
			registered[i] = p;
			return 0;
		}
	return NO_MEMORY;
}

EXPORT int cuMemHostUnregister(void *p)
{
	for (int i = 0; i < PINNED; i++)
		if (registered[i] == p) {
			registered[i] = NULL;
			return 0;
		}
	return 713; /* not registered */
}

EXPORT int cuMemGetHandleForAddressRange(void *handle, ptr p, size_t n, int type,
					 unsigned long long flags)
{
	struct alloc *a = find(p);
	int fd;

	(void)flags;
	if (type != 1 || !a || p % 4096 || n % 4096 ||
	    p + n > (uintptr_t)a->dev + a->size)
		return INVALID;
	fd = memfd_create("dmabuf", MFD_CLOEXEC); /* empty: it cannot be mapped */
	memcpy(handle, &fd, sizeof(fd));
	return fd < 0 ? NO_MEMORY : 0;
}

/* ---- streams ---- */

struct op {
	struct op *next;
	uint8_t *word; /* a store, else copies */
	uint64_t value;
	unsigned bytes;
	size_t n;
	struct { uint8_t *dst; const uint8_t *src; size_t len; } copy[];
};

struct stream {
	pthread_t thread;
	pthread_cond_t more;
	struct op *first, **last;
	unsigned pending;
	uint64_t random;
};

static bool unordered;

static unsigned draw(struct stream *s, unsigned n)
{
	s->random = s->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(s->random >> 33) % n;
}

static void dawdle(struct stream *s)
{
	struct timespec t = { 0, 1000 + draw(s, 60000) };
	unsigned what = draw(s, 8);

	if (what == 0)
		nanosleep(&t, NULL);
	else if (what < 4)
		sched_yield();
}

struct piece {
	uint8_t *dst;
	const uint8_t *src;
	size_t len;
};

/* Words are written whole, as over PCI Express. */
static void move(const struct piece *p)
{
	size_t i = 0;

	for (; i + 8 <= p->len && !(((uintptr_t)p->dst + i) & 7); i += 8) {
		uint64_t v;

		memcpy(&v, p->src + i, 8);
		/* Release: pairs with those who poll on the word. */
		__atomic_store_n((uint64_t *)(void *)(p->dst + i), v, __ATOMIC_RELEASE);
	}
	for (; i < p->len; i++)
		__atomic_store_n(p->dst + i, p->src[i], __ATOMIC_RELEASE);
}

static size_t cut(const struct op *op, struct piece *out)
{
	size_t n = 0;

	for (size_t i = 0; i < op->n; i++)
		for (size_t at = 0; at < op->copy[i].len;) {
			/* Lines of 64 bytes at the destination. */
			size_t len = PIECE - ((uintptr_t)op->copy[i].dst + at) % PIECE;

			len = len < op->copy[i].len - at ? len : op->copy[i].len - at;
			if (out)
				out[n] = (struct piece){ op->copy[i].dst + at,
							 op->copy[i].src + at, len };
			at += len;
			n++;
		}
	return n;
}

static void carry_out(struct stream *s, struct op *op)
{
	struct piece *p;
	size_t n;

	dawdle(s);
	if (op->word) {
		/* Release: pairs with those who poll on it. */
		if (op->bytes == 8)
			__atomic_store_n((uint64_t *)(void *)op->word, op->value, __ATOMIC_RELEASE);
		else
			__atomic_store_n((uint32_t *)(void *)op->word, (uint32_t)op->value,
					 __ATOMIC_RELEASE);
		return;
	}
	n = cut(op, NULL);
	p = malloc((n + 1) * sizeof(*p));
	cut(op, p);
	for (size_t left = n; left; left--) {
		size_t i = draw(s, (unsigned)left);

		move(&p[i]);
		p[i] = p[left - 1];
		if (draw(s, 64) == 0)
			dawdle(s);
	}
	free(p);
}

static void *run(void *arg)
{
	struct stream *s = arg;

	for (;;) {
		struct op *op, **at;

		pthread_mutex_lock(&lock);
		while (!s->first)
			pthread_cond_wait(&s->more, &lock);
		at = &s->first;
		if (unordered && s->first->next && draw(s, 2))
			at = &s->first->next;
		op = *at;
		*at = op->next;
		if (!*at)
			s->last = at;
		pthread_mutex_unlock(&lock);
		carry_out(s, op);
		free(op);
		/* Release: pairs with cuStreamQuery. */
		__atomic_fetch_sub(&s->pending, 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

EXPORT int cuStreamCreateWithPriority(struct stream **out, unsigned flags, int priority)
{
	const char *seed = getenv("FAKE_CUDA_SEED"), *u = getenv("FAKE_CUDA_UNORDERED");
	struct stream *s = calloc(1, sizeof(*s));

	(void)flags;
	(void)priority;
	unordered = u && *u == '1';
	s->random = (seed ? strtoull(seed, NULL, 0) : 1) * 0x9e3779b97f4a7c15u;
	s->last = &s->first;
	pthread_cond_init(&s->more, NULL);
	if (pthread_create(&s->thread, NULL, run, s))
		return INVALID;
	pthread_detach(s->thread);
	*out = s;
	return 0;
}

EXPORT int cuStreamQuery(struct stream *s)
{
	return __atomic_load_n(&s->pending, __ATOMIC_ACQUIRE) ? NOT_READY : 0;
}

static unsigned copies;

EXPORT unsigned fake_cuda_copies(void)
{
	return __atomic_load_n(&copies, __ATOMIC_RELAXED); /* a count alone */
}

static int enqueue(struct stream *s, struct op *op)
{
	__atomic_fetch_add(&copies, (unsigned)op->n, __ATOMIC_RELAXED); /* the same */
	fake_driver_enter();
	fake_driver_leave();
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < op->n; i++) {
		op->copy[i].dst = view_of((uintptr_t)op->copy[i].dst);
		op->copy[i].src = view_of((uintptr_t)op->copy[i].src);
	}
	__atomic_fetch_add(&s->pending, 1, __ATOMIC_RELAXED);
	*s->last = op;
	s->last = &op->next;
	pthread_cond_signal(&s->more);
	pthread_mutex_unlock(&lock);
	return 0;
}

static struct op *new_op(size_t n)
{
	struct op *op = calloc(1, sizeof(*op) + n * sizeof(op->copy[0]));

	op->n = n;
	return op;
}

EXPORT int cuMemcpyBatchAsync_v2(ptr *dst, ptr *src, size_t *len, size_t n, void *attr,
				 size_t *index, size_t n_attr, struct stream *s)
{
	struct op *op;

	(void)attr;
	(void)index;
	if (!n || n_attr != 1)
		return INVALID;
	op = new_op(n);
	for (size_t i = 0; i < n; i++) {
		op->copy[i].dst = (uint8_t *)(uintptr_t)dst[i];
		op->copy[i].src = (uint8_t *)(uintptr_t)src[i];
		op->copy[i].len = len[i];
	}
	return enqueue(s, op);
}

static int copy(ptr dst, ptr src, size_t n, struct stream *s)
{
	struct op *op = new_op(1);

	op->copy[0].dst = (uint8_t *)(uintptr_t)dst;
	op->copy[0].src = (uint8_t *)(uintptr_t)src;
	op->copy[0].len = n;
	return enqueue(s, op);
}

EXPORT int cuMemcpyHtoDAsync_v2(ptr dst, const void *src, size_t n, struct stream *s)
{
	return find(dst) ? copy(dst, (uintptr_t)src, n, s) : INVALID;
}

EXPORT int cuMemcpyDtoHAsync_v2(void *dst, ptr src, size_t n, struct stream *s)
{
	return find(src) ? copy((uintptr_t)dst, src, n, s) : INVALID;
}

EXPORT int cuMemcpyDtoDAsync_v2(ptr dst, ptr src, size_t n, struct stream *s)
{
	return find(dst) && find(src) ? copy(dst, src, n, s) : INVALID;
}

static int store(struct stream *s, ptr p, uint64_t value, unsigned bytes)
{
	struct op *op = new_op(0);

	pthread_mutex_lock(&lock);
	op->word = view_of(p);
	pthread_mutex_unlock(&lock);
	op->value = value;
	op->bytes = bytes;
	return enqueue(s, op);
}

EXPORT int cuStreamWriteValue32_v2(struct stream *s, ptr p, uint32_t value, unsigned flags)
{
	(void)flags;
	return store(s, p, value, 4);
}

struct mem_op {
	int operation, pad;
	ptr address;
	uint64_t value, rest[3];
};

EXPORT int cuStreamBatchMemOp_v2(struct stream *s, unsigned n, const struct mem_op *op, unsigned flags)
{
	(void)flags;
	if (!n || n > 256)
		return INVALID;
	for (unsigned i = 0; i < n; i++) {
		unsigned bytes = op[i].operation == 5 ? 8 : 4;
		int rc = (op[i].operation != 5 && op[i].operation != 2) || op[i].address % bytes
				 ? INVALID : store(s, op[i].address, op[i].value, bytes);

		if (rc)
			return rc;
	}
	return 0;
}

/* ---- contexts, other processes ---- */

static __thread void *current;

EXPORT int cuInit(unsigned flags)
{
	(void)flags;
	return 0;
}

EXPORT int cuCtxGetCurrent(void **ctx)
{
	*ctx = current;
	return 0;
}

EXPORT int cuCtxSetCurrent(void *ctx)
{
	current = ctx;
	return 0;
}

EXPORT int cuCtxGetDevice(int *device)
{
	*device = 0;
	return 0;
}

EXPORT int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	*least = 0;
	*greatest = -5;
	return 0;
}

struct ipc {
	char bytes[64];
};

EXPORT int cuIpcGetMemHandle(struct ipc *h, ptr p)
{
	struct alloc *a = find(p);

	memset(h, 0, sizeof(*h));
	if (!a)
		return INVALID;
	snprintf(h->bytes, sizeof(h->bytes), "%zu /proc/%d/fd/%d", a->size, (int)getpid(), a->fd);
	return 0;
}

EXPORT int cuIpcOpenMemHandle_v2(ptr *p, struct ipc h, unsigned flags)
{
	char path[64];
	size_t size;
	int fd, rc;

	(void)flags;
	if (sscanf(h.bytes, "%zu %63s", &size, path) != 2)
		return INVALID;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return INVALID;
	pthread_mutex_lock(&lock);
	rc = add(fd, size, p);
	pthread_mutex_unlock(&lock);
	return rc;
}

EXPORT int cuIpcCloseMemHandle(ptr p)
{
	return cuMemFree_v2(p);
}

/* Memory of cuMemAlloc has no such handle. */
#define WITHOUT(name)                                                                              \
	EXPORT int name(void);                                                                     \
	EXPORT int name(void)                                                                      \
	{                                                                                          \
		return NOT_SUPPORTED;                                                              \
	}
WITHOUT(cuMemRetainAllocationHandle)
WITHOUT(cuMemRelease)
WITHOUT(cuMemExportToShareableHandle)
WITHOUT(cuMemImportFromShareableHandle)
WITHOUT(cuMemAddressReserve)
WITHOUT(cuMemAddressFree)
WITHOUT(cuMemMap)
WITHOUT(cuMemUnmap)
WITHOUT(cuMemSetAccess)
