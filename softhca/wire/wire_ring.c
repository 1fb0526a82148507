/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of wire_ring.h: memory, indices, and the handshake that lets the
 * reader sleep. tests/model/shm_wake.pml is the model of the handshake. */
#include "softhca/wire/wire_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca/tools/log.h"
#include "softhca/tools/options.h"

enum { RING_SIZE = 1 << 20, RING_MAGIC = 0x50fca105 };

struct ring_shared {
	uint32_t magic;
	uint32_t size;
	uint32_t shown;
	_Alignas(64) uint64_t tail;
	_Alignas(64) uint64_t head;
	_Alignas(64) uint32_t asleep;
	_Alignas(64) uint32_t reach;
};

_Static_assert(sizeof(struct ring_shared) == 320, "layout in wire_ring.h");

/* Where the bytes begin in the file: they are mapped by themselves, too. */
static size_t wire_ring_offset(void)
{
	return (size_t)host_page();
}

static int wire_ring_map(struct ring *r, int fd)
{
	size_t offset = wire_ring_offset(), all = offset + 2 * (size_t)RING_SIZE;
	int rw = PROT_READ | PROT_WRITE;
	uint8_t *m = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (m == MAP_FAILED)
		return -errno;
	if (mmap(m, offset + RING_SIZE, rw, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    mmap(m + offset + RING_SIZE, RING_SIZE, rw, MAP_SHARED | MAP_FIXED, fd, (off_t)offset) == MAP_FAILED) {
		int err = errno;

		munmap(m, all);
		return -err;
	}
	*r = (struct ring){ .s = (void *)m, .bytes = m + offset, .size = RING_SIZE };
	return 0;
}

int ring_create(struct ring *r, int *fd)
{
	int ret;

	*fd = memfd_create("softhca ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return -errno;
	/* Sealed, so that neither process can make its peer fault by a shorter file. */
	if (hca_size_file(*fd, (off_t)wire_ring_offset() + RING_SIZE) ||
	    fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		ret = -errno;
	else
		ret = wire_ring_map(r, *fd);
	if (ret) {
		close(*fd);
		return ret;
	}
	r->s->size = RING_SIZE;
	r->s->magic = RING_MAGIC;
	return 0;
}

int ring_open(struct ring *r, int fd)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS), ret;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) ||
	    st.st_size != (off_t)wire_ring_offset() + RING_SIZE)
		return -EPROTO;
	ret = wire_ring_map(r, fd);
	if (ret)
		return ret;
	if (r->s->magic != RING_MAGIC || r->s->size != RING_SIZE) {
		ring_close(r);
		return -EPROTO;
	}
	return 0;
}

void ring_close(struct ring *r)
{
	if (r->s)
		munmap(r->s, wire_ring_offset() + 2 * (size_t)RING_SIZE);
	*r = (struct ring){ 0 };
}

/* ---- writer ---- */

size_t ring_room(struct ring *r, size_t want)
{
	uint64_t used = r->tail - r->head;

	if (r->size - used < want) {
		/* Acquire: pairs with ring_release(); the bytes given back are not
		 * read any more. An index that makes no sense counts as full. */
		uint64_t head = __atomic_load_n(&r->s->head, __ATOMIC_ACQUIRE);

		if (r->tail - head <= used)
			r->head = head;
		used = r->tail - r->head;
	}
	return r->size - used;
}

uint8_t *ring_at_tail(struct ring *r)
{
	return r->bytes + (r->tail & (r->size - 1));
}

void ring_push(struct ring *r, size_t n)
{
	r->tail += n;
}

bool ring_publish(struct ring *r)
{
	if (r->published == r->tail)
		return false;
	r->published = r->tail;
	/* Sequentially consistent both, as are the reader's store of asleep in
	 * ring_sleep() and its load of tail in ring_readable(). There is one order of
	 * the four: either this load sees asleep, or the reader's look at tail, which
	 * follows its store, sees the packet. The store is a release, too. */
	__atomic_store_n(&r->s->tail, r->tail, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&r->s->asleep, __ATOMIC_SEQ_CST))
		return false;
	/* One waker is enough. */
	return __atomic_exchange_n(&r->s->asleep, 0, __ATOMIC_RELAXED) != 0;
}

bool ring_unread(const struct ring *r)
{
	/* Relaxed: pairs with ring_release(); nothing is read or reused for it. */
	return __atomic_load_n(&r->s->head, __ATOMIC_RELAXED) != r->published;
}

unsigned ring_reach(const struct ring *r)
{
	/* Relaxed: a hint. Payload that the reader cannot read it asks for again. */
	return __atomic_load_n(&r->s->reach, __ATOMIC_RELAXED) &
	       (RING_READS | RING_MAPS | RING_GPU);
}

/* Relaxed: pairs with ring_shown(); the release of tail in ring_publish(), which shows the
 * reader a packet, comes behind it. */
void ring_count_shown(struct ring *r)
{
	uint32_t n = __atomic_load_n(&r->s->shown, __ATOMIC_RELAXED);

	if (n != RING_HIDDEN)
		__atomic_store_n(&r->s->shown, n + 1, __ATOMIC_RELAXED);
}

void ring_hide(struct ring *r)
{
	__atomic_store_n(&r->s->shown, RING_HIDDEN, __ATOMIC_RELAXED); /* pairs with ring_shown() */
}

/* ---- reader ---- */

uint32_t ring_shown(const struct ring *r)
{
	/* Relaxed: pairs with the two above; the caller has seen tail, by acquire. */
	return __atomic_load_n(&r->s->shown, __ATOMIC_RELAXED);
}

int64_t ring_readable(struct ring *r, const uint8_t **at)
{
	if (r->tail == r->head) {
		/* Sequentially consistent: pairs with the store in ring_publish(). */
		r->tail = __atomic_load_n(&r->s->tail, __ATOMIC_SEQ_CST);
		if (r->tail - r->head > r->size)
			return -1;
	}
	*at = r->bytes + (r->head & (r->size - 1));
	return (int64_t)(r->tail - r->head);
}

void ring_pop(struct ring *r, size_t n)
{
	r->head += n;
}

void ring_release(struct ring *r)
{
	if (r->published == r->head)
		return;
	r->published = r->head;
	/* Release: pairs with the acquire in ring_room(). */
	__atomic_store_n(&r->s->head, r->head, __ATOMIC_RELEASE);
}

void ring_sleep(struct ring *r)
{
	/* Sequentially consistent: pairs with the load in ring_publish(). */
	__atomic_store_n(&r->s->asleep, 1, __ATOMIC_SEQ_CST);
}

void ring_awake(struct ring *r)
{
	/* Relaxed: at worst one byte too many on the socket. */
	__atomic_store_n(&r->s->asleep, 0, __ATOMIC_RELAXED);
}

void ring_set_reach(struct ring *r, unsigned reach)
{
	/* Relaxed: see ring_reach(). */
	__atomic_store_n(&r->s->reach, reach, __ATOMIC_RELAXED);
}
