/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that processes of one host show each other: see share.h.
 *
 * What is shown is what was there when the region was registered, as pinned pages are. Until it
 * is taken back its addresses mean that. Where a later registration finds something else there,
 * it is.
 *
 * A region takes a descriptor on either side, as long as they are few beside those that the
 * process may have: its own files come first. What is not shown, or not taken, is read in another
 * way. A sealed file cannot be cut: its reader keeps none. */
#include "softhca/wire/share.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca/gpu/dma.h"
#include "softhca/engine/dp.h"
#include "softhca/memory/file_map.h"
#include "softhca/wire/wire.h"

#define SHARE_MIN (64u << 10) /* shorter regions hold no long payloads */
#define FD_PART   4	      /* of the descriptors that there may be: so many are enough here */

struct own {
	struct share_msg msg;
	int fd;
};

struct share {
	uint32_t key;
	uint64_t at, len;
	uint8_t *map; /* what lies at at */
	uint64_t end; /* of it in the file: a shorter one would not be there any more */
	int fd;	      /* -1: it cannot become shorter */
	bool gpu;
	struct cu_ipc ipc;
};

struct shares {
	unsigned n;
	struct share s[SHARE_MAX];
};

static struct own own[SHARE_MAX];
static unsigned n_own;
static unsigned n_fds; /* kept here, of both sides */

/* May one more be kept? The program may have changed its limit. */
static bool may_keep_fd(void)
{
	struct rlimit r;

	return getrlimit(RLIMIT_NOFILE, &r) || n_fds < r.rlim_cur / FD_PART;
}

static void close_fd(int fd)
{
	if (fd < 0)
		return;
	close(fd);
	n_fds--;
}

static bool share_inside(uint64_t at, uint64_t len, uint64_t range, uint64_t range_len)
{
	return at - range < range_len && len <= range_len - (at - range);
}

/* ---- the owner's side ---- */

static void share_take_back(unsigned i)
{
	struct share_msg m = own[i].msg;

	m.kind = SHARE_TAKE_BACK;
	close_fd(own[i].fd);
	for (n_own--; i < n_own; i++) /* in order: the last one counts */
		own[i] = own[i + 1];
	wire_shm_tell(&m, -1);
}

/* Is what lies at at, this part of that file, what was shown? */
static bool share_agrees(const struct own *o, int fd, uint64_t at, uint64_t offset)
{
	struct stat now, then;

	return fd >= 0 && offset - at == o->msg.offset - o->msg.at && !fstat(fd, &now) &&
	       !fstat(o->fd, &then) && now.st_dev == then.st_dev && now.st_ino == then.st_ino;
}

void dp_mr_registered(const struct hca_mr *mr, int fd, uint64_t offset)
{
	uint64_t at = (uintptr_t)mr->va;

	for (unsigned i = n_own; i-- > 0;) /* it lay there before, and something else does now */
		if (own[i].msg.at < at + mr->len && at < own[i].msg.at + own[i].msg.len &&
		    !share_agrees(&own[i], fd, at, offset))
			share_take_back(i);
	if (fd < 0)
		return;
	if (mr->len < SHARE_MIN || n_own == SHARE_MAX || !wire_shm_on() || !may_keep_fd()) {
		close(fd);
		return;
	}
	n_fds++;
	own[n_own] = (struct own){ .msg = { .kind = SHARE_SHOW, .key = mr->key, .at = at,
					    .len = mr->len, .offset = offset }, .fd = fd };
	wire_shm_tell(&own[n_own].msg, fd);
	n_own++;
}

/* Two that were alive at once do not overlap, and of one that was freed the IPC handle does not come
 * again. Those with descriptors have nothing that tells them apart. */
static bool same_allocation(const struct share_msg *m, const struct dma_shown *x)
{
	return m->at == x->at && m->len == x->len && !memcmp(&m->ipc, &x->ipc, sizeof(x->ipc));
}

/* What lay there before and was freed while it was registered. */
static void take_back_freed(const struct dma_shown *x)
{
	for (unsigned i = n_own; i-- > 0;)
		if (own[i].msg.kind == SHARE_GPU && own[i].fd < 0 && own[i].msg.at < x->at + x->len &&
		    x->at < own[i].msg.at + own[i].msg.len && !same_allocation(&own[i].msg, x))
			share_take_back(i);
}

static bool is_shown(const struct dma_shown *x)
{
	for (unsigned i = 0; i < n_own; i++)
		if (own[i].msg.kind == SHARE_GPU && same_allocation(&own[i].msg, x))
			return true;
	return false;
}

void dp_mr_registered_gpu(const struct hca_mr *mr, struct dma_answer *a)
{
	while (a->n_shown && n_own < SHARE_MAX && wire_shm_on()) {
		const struct dma_shown *x = &a->shown[--a->n_shown];

		take_back_freed(x);
		if (is_shown(x) /* for another region */ || (x->fd >= 0 && !may_keep_fd())) {
			if (x->fd >= 0)
				close(x->fd);
			continue;
		}
		n_fds += x->fd >= 0;
		own[n_own] = (struct own){
			.msg = { SHARE_GPU, mr->key, x->at, x->len, 0, x->ipc }, .fd = x->fd
		};
		wire_shm_tell(&own[n_own].msg, x->fd);
		n_own++;
	}
}

void dp_mr_gone(const struct hca_mr *mr)
{
	rc_order_settle_all();
	for (unsigned i = n_own; i-- > 0;)
		if (own[i].msg.key == mr->key)
			share_take_back(i);
}

void share_each(void (*fn)(void *arg, const struct share_msg *m, int fd), void *arg)
{
	for (unsigned i = 0; i < n_own; i++)
		fn(arg, &own[i].msg, own[i].fd);
}

static bool share_covered(const struct iovec *v)
{
	uint64_t at = (uintptr_t)v->iov_base;

	for (unsigned i = n_own; i-- > 0;)
		if (share_inside(at, v->iov_len, own[i].msg.at, own[i].msg.len))
			return true;
	return false;
}

bool share_covers(const struct iovec *iov, int niov)
{
	for (int i = 0; i < niov; i++)
		if (!share_covered(&iov[i]))
			return false;
	return true;
}

void share_forked(void)
{
	for (unsigned i = 0; i < n_own; i++)
		close_fd(own[i].fd);
	n_own = 0;
}

/* ---- the reader's side ---- */

static struct dma_shown share_shown(const struct share *h)
{
	return (struct dma_shown){ h->at, h->len, h->ipc, h->fd };
}

static void share_unmap(struct share *h)
{
	struct dma_shown x = share_shown(h);

	if (!h->gpu)
		file_unmap(h->map, h->len);
	else if (h->map)
		dma_unimport(&x, h->map);
	close_fd(h->fd);
}

static void share_forget(struct shares *s, unsigned i)
{
	share_unmap(&s->s[i]);
	for (s->n--; i < s->n; i++)
		s->s[i] = s->s[i + 1];
}

static bool file_has(int fd, uint64_t end)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && end <= (uint64_t)st.st_size;
}

/* Of the seal here, the length is good for ever when it is good behind it. */
static bool share_add(struct shares *s, const struct share_msg *m, int fd)
{
	uint64_t end = m->offset + m->len;
	int seals = fcntl(fd, F_GET_SEALS);
	bool sealed = seals >= 0 && seals & F_SEAL_SHRINK;
	uint8_t *map;

	if (s->n == SHARE_MAX || end < m->len || m->at + m->len < m->at || !file_has(fd, end) ||
	    (!sealed && !may_keep_fd()))
		return false;
	map = file_map(fd, m->offset, m->len, PROT_READ, MAP_SHARED);
	if (!map)
		return false;
	if (sealed)
		close(fd);
	else
		n_fds++;
	s->s[s->n++] = (struct share){ .key = m->key, .at = m->at, .len = m->len, .map = map,
				       .end = end, .fd = sealed ? -1 : fd };
	return true;
}

/* Not possible where there is no memory of a GPU here yet: shares_map_gpu(). */
static bool map_gpu(struct share *h)
{
	struct dma_shown x = share_shown(h);

	if (!h->map)
		h->map = dma_import(&x);
	return h->map != NULL;
}

static bool add_gpu(struct shares *s, const struct share_msg *m, int fd)
{
	if (s->n == SHARE_MAX || !m->len || m->at + m->len < m->at || (fd >= 0 && !may_keep_fd()))
		return false;
	n_fds += fd >= 0;
	s->s[s->n] = (struct share){ .key = m->key, .at = m->at, .len = m->len, .fd = fd, .gpu = true,
				     .ipc = m->ipc };
	map_gpu(&s->s[s->n++]);
	return true;
}

void shares_map_gpu(struct shares *s)
{
	for (unsigned i = 0; s && i < s->n; i++)
		if (s->s[i].gpu)
			map_gpu(&s->s[i]);
}

bool shares_gpu(const struct shares *s)
{
	for (unsigned i = 0; s && i < s->n; i++)
		if (s->s[i].gpu && s->s[i].map)
			return true;
	return false;
}

void shares_take(struct shares **p, const struct share_msg *m, int fd)
{
	struct shares *s = *p;

	if ((m->kind == SHARE_SHOW && fd >= 0) || m->kind == SHARE_GPU) {
		if (!s)
			s = *p = calloc(1, sizeof(*s));
		if (s && (m->kind == SHARE_GPU ? add_gpu(s, m, fd) : share_add(s, m, fd)))
			return;
	}
	if (fd >= 0)
		close(fd);
	for (unsigned i = s && m->kind == SHARE_TAKE_BACK ? s->n : 0; i-- > 0;)
		if (s->s[i].key == m->key)
			share_forget(s, i);
}

void shares_drop(struct shares **p)
{
	while (*p && (*p)->n)
		share_forget(*p, (*p)->n - 1);
	free(*p);
	*p = NULL;
}

void shares_forked(const struct shares *s)
{
	for (unsigned i = 0; s && i < s->n; i++)
		close_fd(s->s[i].fd);
}

static const struct share *share_find(const struct shares *s, const struct iovec *v)
{
	uint64_t at = (uintptr_t)v->iov_base;

	for (unsigned i = s->n; i-- > 0;) {
		if (share_inside(at, v->iov_len, s->s[i].at, s->s[i].len))
			return &s->s[i];
	}
	return NULL;
}

bool shares_in_gpu(const struct shares *s, const struct iovec *v)
{
	const struct share *h = s ? share_find(s, v) : NULL;

	return h && h->gpu;
}

bool shares_translate(const struct shares *s, struct iovec *iov, int niov)
{
	const struct share *last = NULL, *h;

	for (int i = 0; i < niov; i++) {
		h = s ? share_find(s, &iov[i]) : NULL;
		if (!h || !h->map)
			return false;
		/* The owner may have cut the file: beyond its end there is SIGBUS. */
		if (h != last && !h->gpu && h->fd >= 0 && !file_has(h->fd, h->end))
			return false;
		last = h;
	}
	for (int i = 0; i < niov; i++) {
		h = share_find(s, &iov[i]);
		iov[i].iov_base = h->map + ((uintptr_t)iov[i].iov_base - h->at);
	}
	return true;
}
